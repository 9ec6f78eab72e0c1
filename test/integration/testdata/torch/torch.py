"""Stands in for PyTorch where the sample program runs without GPUs: as much of it as that program uses."""
import os
import pickle


def save(state, path):
    with open(path, "wb") as file:
        pickle.dump(state, file)


def load(path):
    with open(path, "rb") as file:
        return pickle.load(file)


class cuda:
    @staticmethod
    def is_available():
        return False


class distributed:
    @staticmethod
    def init_process_group(backend):
        """Look for what the rendezvous of env:// reads."""
        if backend != "gloo":
            raise ValueError(backend)
        if not 0 <= int(os.environ["RANK"]) < int(os.environ["WORLD_SIZE"]):
            raise ValueError("a rank that is none: " + os.environ["RANK"])
        int(os.environ["MASTER_PORT"])
        os.environ["MASTER_ADDR"].split(".")
