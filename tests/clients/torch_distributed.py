# SPDX-License-Identifier: Apache-2.0
# torch.distributed over NCCL: two processes, a device for each. Starts both itself; "ok" or what was wrong, status 1.
import os
import subprocess
import sys


def train_together(torch, number):
    """Half of the samples on each device, DDP and FSDP: the weights of one process with all of them."""
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    x = torch.randn(32, 8, generator=torch.Generator().manual_seed(1))

    def trained(wrap, device, part):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(device)
        called = wrap(model)
        optimizer = torch.optim.SGD(called.parameters(), 0.1)
        for _ in range(4):
            optimizer.zero_grad()
            (called(part.to(device)) - 2 * part[:, :1].to(device)).pow(2).mean().backward()
            optimizer.step()
        weights = [getattr(p, "full_tensor", lambda p=p: p)() for p in model.parameters()]
        return torch.cat([w.detach().cpu().flatten() for w in weights])

    expected = trained(lambda model: model, "cpu", x)
    wraps = {"DDP": lambda model: DistributedDataParallel(model, device_ids=[number]), "FSDP": fully_shard}
    for name, wrap in wraps.items():
        got = trained(wrap, f"cuda:{number}", x[16 * number : 16 * number + 16])
        if not torch.allclose(got, expected, rtol=1e-4, atol=1e-5):
            yield f"{name}: weights differ by {(got - expected).abs().max():.3g}"


def rank(number):
    import torch
    import torch.distributed as distributed

    torch.cuda.set_device(number)
    distributed.init_process_group("nccl", rank=number, world_size=2)
    wrong = []

    def check(name, got, wanted):
        if got.cpu().tolist() != wanted:
            wrong.append(f"rank {number}: {name}: {got.cpu().tolist()[:8]} instead of {wanted[:8]}")

    values = torch.arange(1000, dtype=torch.float32, device="cuda") + number
    distributed.all_reduce(values)
    check("all_reduce", values, [float(2 * i + 1) for i in range(1000)])
    halves = torch.full((300,), number + 1.0, dtype=torch.bfloat16, device="cuda")
    distributed.all_reduce(halves)
    check("all_reduce of bfloat16", halves, [3.0] * 300)
    most = torch.arange(10, device="cuda") * (number + 1)
    distributed.all_reduce(most, op=distributed.ReduceOp.MAX)
    check("all_reduce of int64, maximum", most, list(range(0, 20, 2)))
    parts = [torch.zeros(5, device="cuda") for _ in range(2)]
    distributed.all_gather(parts, torch.full((5,), number + 1.0, device="cuda"))
    check("all_gather", torch.cat(parts), [1.0] * 5 + [2.0] * 5)
    shared = torch.full((4,), number * 7.0 + 3, device="cuda")
    distributed.broadcast(shared, 1)
    check("broadcast", shared, [10.0] * 4)
    wrong += [f"rank {number}: {text}" for text in train_together(torch, number)]
    distributed.barrier(device_ids=[number])
    distributed.destroy_process_group()
    print("\n".join(wrong) if wrong else f"rank {number}: ok", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    if "RANK" in os.environ:
        sys.exit(rank(int(os.environ["RANK"])))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", NCCL_SOCKET_IFNAME="lo", PTARMIGAN_DEVICES="2")
    processes = [subprocess.Popen([sys.executable, __file__], env=dict(os.environ, RANK=str(i))) for i in range(2)]
    sys.exit(max(process.wait() for process in processes))
