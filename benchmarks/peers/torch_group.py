"""Processes of one torch.distributed group with Gloo, of which rank 0 replies to requests.

The argument of the program is the number of processes.
"""
import os
import socket
import subprocess
import sys

import torch
import torch.distributed as dist


def _serve(make_reply, rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    reply = make_reply(world)
    if rank == 0:
        print("ready", torch.__version__, flush=True)
    while True:
        request = [sys.stdin.readline() if rank == 0 else None]
        dist.broadcast_object_list(request, 0)
        if not request[0]:
            os._exit(0)
        number = reply(*request[0].split())
        if rank == 0:
            print(number, flush=True)


def run(make_reply):
    """Prints "ready <version>", then the reply to the words of each line of standard input.

    `make_reply`, called with the number of processes in each of them, returns the function of the
    words, which runs in all processes.
    """
    if len(sys.argv) == 4:
        _serve(make_reply, int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    world = int(sys.argv[1])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for rank in range(1, world):
        subprocess.Popen([sys.executable, sys.argv[0], str(rank), str(world), port],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _serve(make_reply, 0, world, port)
