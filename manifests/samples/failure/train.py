import datetime, json, os, signal, ssl, sys, time, urllib.request
import torch

POD, EPOCH = os.environ["PET_NODE_RANK"], int(os.environ["JOBTREE_EPOCH"])
FIRST = os.environ["RANK"] == "0"  # it saves: all have the same weights
INTERVAL = float(os.environ.get("SAVE_SECONDS", 1800))  # the Run's checkpoint: 30m
TOKEN_DIR = os.environ.get("TOKEN_DIR", "/var/run/secrets/kubernetes.io/serviceaccount")

def tell(says, run=os.environ["JOBTREE_RUN"]):
    """Write to the Run; None takes a word back. That nobody answers is no reason to stop."""
    token, namespace = (open(os.path.join(TOKEN_DIR, name)).read() for name in ("token", "namespace"))
    request = urllib.request.Request(
        "https://%s:%s/apis/rq.davidlangworthy.io/v1/namespaces/%s/runs/%s"
        % (os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"], namespace, run),
        method="PATCH", data=json.dumps({"metadata": {"annotations": says}}).encode(),
        headers={"Content-Type": "application/merge-patch+json", "Authorization": "Bearer " + token})
    trusted = ssl.create_default_context(cafile=os.path.join(TOKEN_DIR, "ca.crt"))
    try:
        urllib.request.urlopen(request, timeout=10, context=trusted).close()
    except OSError as error:
        print("jobtree is not told:", error, flush=True)

def saved(done):
    """Tell jobtree that all ranks have saved by now and, when done, that it need not wait for them."""
    at = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    tell({"rq.davidlangworthy.io/saved-at": at, "rq.davidlangworthy.io/take-me": "true" if done else None})

def load(path):
    return torch.load(path) if os.path.exists(path) else {"step": 0, "epochs": {}}

def save(state, path, done=False):
    """Replace the last checkpoint as a whole, unless a later pod of the same rank has: this node may be out of reach."""
    state["epochs"] = dict(load(path)["epochs"])
    if state["epochs"].get(POD, 0) > EPOCH:
        sys.exit("a later pod has this rank")
    state["epochs"][POD] = EPOCH
    torch.save(state, path + ".new")  # with the model's and the optimizer's state_dict()
    os.replace(path + ".new", path)
    saved(done)

def main(path):
    told, last = [], time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: told.append("to go"))
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if FIRST:
        tell({"rq.davidlangworthy.io/take-me": None})  # who was here before was done; this one is not
    state = load(path)
    print("rank %(RANK)s of %(WORLD_SIZE)s at %(MASTER_ADDR)s, epoch %(JOBTREE_EPOCH)s, "
          "restart %(TORCHELASTIC_RESTART_COUNT)s" % os.environ, "from step", state["step"], flush=True)
    while not told:
        time.sleep(0.01)  # one step: forward, backward, optimizer.step()
        state["step"] += 1
        if FIRST and time.monotonic() - last > INTERVAL:
            save(state, path)
            last = time.monotonic()
    if FIRST:
        save(state, path, done=True)

if __name__ == "__main__":
    main(os.path.join(sys.argv[1], "checkpoint"))
