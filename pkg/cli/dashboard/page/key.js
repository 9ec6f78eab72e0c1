// The key that the server has told this browser once, behind the # of the address. It opens what is read of the cluster. It is kept
// where only pages of this very port find it, unlike the cookie, which browsers show to every port.
const name = "jobtree-key";

const stored = () => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // the browser keeps nothing
  }
};

// take takes the key out of the address, where nobody is to see it.
const take = () => {
  const told = location.hash.match(/^#key=([0-9a-f]+)$/)?.[1];
  if (!told) {
    return stored();
  }
  history.replaceState(null, "", "/");
  try {
    localStorage.setItem(name, told);
  } catch {
    // the page works until it is loaded again
  }
  return told;
};

const key = take();

// keyed is a path of the server with the key: the last one, since this port's server may have been started again since.
export const keyed = (path) => `${path}${path.includes("?") ? "&" : "?"}key=${stored() ?? key}`;
