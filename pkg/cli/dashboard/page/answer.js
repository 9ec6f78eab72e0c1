// What the server is asked besides what it sends.
import { useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { get } from "./store.js";

// often is after how many milliseconds something may be asked again, and share by how much longer it is waited than the last answer took.
const often = 2000;
const share = 5;

// Asked is the last answer to a path. One answer is waited for at a time: of the paths that come up meanwhile the last one counts. What is
// shown stays while another answer is on its way, or none comes.
class Asked {
  data = null;
  failed = "";
  #path = "";
  #version = 0;
  #at = 0;
  #waits = false;
  #rest = often; // until it may be asked again

  constructor(tell) {
    this.tell = tell;
  }

  // want asks for a path if that has not been answered, or for a version of the page.
  want(path, version) {
    this.wanted = { path, version };
    if (this.#waits || (path === this.#path && (version === this.#version || Date.now() - this.#at < this.#rest))) {
      return;
    }
    this.#waits = true;
    const begun = Date.now();
    get(path).then((data) => {
      this.data = data;
      this.failed = "";
    }, (error) => {
      this.failed = error.message;
    }).then(() => {
      [this.#path, this.#version, this.#at, this.#waits] = [path, version, Date.now(), false];
      this.#rest = Math.max(often, share * (this.#at - begun));
      if (this.tell) {
        this.tell();
        this.want(this.wanted.path, this.wanted.version);
      }
    });
  }
}

// useAnswer is what the server answers to a path now: {data, failed}.
export const useAnswer = (path, version) => {
  const [, draw] = useState(0);
  const asked = useRef();
  asked.current ??= new Asked(() => draw((n) => n + 1));
  useEffect(() => asked.current.want(path, version));
  useEffect(() => () => {
    asked.current.tell = null;
  }, []);
  return asked.current;
};
