"""Two PyTorch RPC workers, w0 in this process and w1 in a child, of which w0 replies to requests.

The arguments of the program are TRANSPORTS CHANNELS, TensorPipe's names; empty: its default.
"""
import os
import socket
import subprocess
import sys

import torch
import torch.distributed.rpc as rpc


def _join(rank, port, transports, channels, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    chosen = dict(options)
    if transports:
        chosen["_transports"] = transports.split(",")
    if channels:
        chosen["_channels"] = channels.split(",")
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=2,
                 rpc_backend_options=rpc.TensorPipeRpcBackendOptions(**chosen))


def _callee(options, port, transports, channels):
    _join(1, port, transports, channels, options)
    sys.stdin.read()
    os._exit(0)


def _caller(reply, options, transports, channels):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    # Ends with this process, whose end of the pipe then closes.
    subprocess.Popen([sys.executable, sys.argv[0], "--callee", port, transports, channels],
                     stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    _join(0, port, transports, channels, options)
    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        print(reply(*line.split()), flush=True)
    os._exit(0)


def run(reply, **options):
    """Prints "ready <version>", then `reply` of the words of each line of standard input.

    `options` are those of TensorPipeRpcBackendOptions.
    """
    if sys.argv[1] == "--callee":
        _callee(options, *sys.argv[2:])
    else:
        _caller(reply, options, *sys.argv[1:])
