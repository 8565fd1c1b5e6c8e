#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What of PyTorch is the device's more than a computation: graphs, memory, loaders, attention's kernels, profiler, sharing of tensors."""

import torch
import torch.nn.functional as F
from operations import main
from torch_pairs import on_both

normal = torch.randn


def layers():
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))


def warm_up(work, times=3):
    """On a stream of its own, as captures want it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(times):
            work()
    torch.cuda.current_stream().wait_stream(stream)


@on_both
def graph(d):
    model, x, y = layers().to(d), normal(8, 16).to(d), normal(8, 16).to(d)
    if d == "cpu":
        return [model(y), model(x)]
    place = x.clone()
    warm_up(lambda: model(place))
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        result = model(place)
    results = []
    for value in (y, x):
        place.copy_(value)
        captured.replay()
        results.append(result.clone())
    return results


@on_both
def graph_of_training_steps(d):
    model, x = layers().to(d), normal(8, 16).to(d)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2, capturable=d == "cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    if d == "cpu":
        return [[step() for _ in range(6)][-1], model[0].weight]
    warm_up(step)
    captured = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(captured):
        loss = step()
    for _ in range(3):
        captured.replay()
    return [loss, model[0].weight]


@on_both
def graphed_callables(d):
    model, x, losses = layers().to(d), normal(8, 16).to(d), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    call = torch.cuda.make_graphed_callables(model, (normal(8, 16).to(d),)) if d == "cuda" else model
    for _ in range(4):
        loss = call(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@on_both
@torch.no_grad()
def compiled_with_graphs(d):
    model, x = layers().to(d), normal(8, 16).to(d)
    call = torch.compile(model, mode="reduce-overhead") if d == "cuda" else model
    return [call(x).clone() for _ in range(4)]


@on_both
def compiled_flex_attention(d):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    query, key, value = (normal(1, 2, 128, 32).to(d) for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 2, 128, 128, device=d)
    return (torch.compile(flex_attention) if d == "cuda" else flex_attention)(query, key, value, block_mask=mask)


@on_both
def attention_by_each_kernel(d):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    single = [normal(1, 2, 64, 32).to(d) for _ in range(3)]
    results = []
    for backend in (SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        halves = backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION)
        with sdpa_kernel(backend if d == "cuda" else SDPBackend.MATH):
            results.append(F.scaled_dot_product_attention(*([t.half() for t in single] if halves else single), is_causal=True))
    return results


@on_both
def loader(d):
    data = torch.utils.data.TensorDataset(torch.arange(64.0).view(32, 2))
    batches = [b for (b,) in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, pin_memory=d == "cuda")]
    assert all(b.is_pinned() == (d == "cuda") for b in batches)
    return [b.to(d, non_blocking=True) * 2 for b in batches]


@on_both
def memory(d):
    if d == "cpu":
        return [True, True, True, True]
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    block = torch.empty(1 << 20, device=d)
    grown, (free, total) = torch.cuda.memory_allocated() - before, torch.cuda.mem_get_info()
    del block
    torch.cuda.memory._record_memory_history()
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    try:
        torch.empty(1 << 40, device=d)
        refused = False
    except torch.OutOfMemoryError:
        refused = True
    return [grown == 4 << 20, 0 < free <= total, refused, "segments" in snapshot and len(torch.cuda.memory_summary()) > 100]


@on_both
def expandable_segments(d):
    if d == "cuda":
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    total = sum(torch.full((1 << 18,), float(i), device=d) for i in range(20)).sum() * 1e-6
    if d == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.memory._set_allocator_settings("expandable_segments:False")
    return total


@on_both
def events(d):
    if d == "cpu":
        return True
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    normal(64, 64, device=d) @ normal(64, 64, device=d)
    last.record()
    last.synchronize()
    return 0 < first.elapsed_time(last) < 1e5


@on_both
def profiler(d):
    """Of the host's side: CUPTI is not there, which the library says."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (d == "cuda")) as seen:
        normal(64, 64).to(d) @ normal(64, 64).to(d)
    return "aten::mm" in [event.key for event in seen.key_averages()]


def triple(tensors, done):
    shared = tensors.get()
    shared.mul_(3)
    torch.cuda.synchronize()
    del shared
    done.put(True)


@on_both
def sharing_with_a_process(d):
    values = torch.arange(10.0, device=d)
    if d == "cpu":
        return values * 3
    context = torch.multiprocessing.get_context("spawn")
    tensors, done = context.Queue(), context.Queue()
    process = context.Process(target=triple, args=(tensors, done))
    process.start()
    tensors.put(values)
    assert done.get(timeout=300)
    process.join()
    return values


@on_both
def sparse(d):
    a, b = normal(20, 30), normal(30, 7).to(d)
    a[a < 0.5] = 0
    a = a.to(d)
    return [a.to_sparse() @ b, a.to_sparse_csr() @ b, torch.sparse.sum(a.to_sparse(), 0).to_dense()]


@on_both
def function_transforms(d):
    from torch.func import grad, hessian, jacrev, vmap

    function, x = lambda v: (v.sin() ** 2).sum(), normal(5).to(d)
    return [grad(function)(x), hessian(function)(x), jacrev(lambda v: v * v)(x), vmap(grad(function))(normal(3, 5).to(d))]


@on_both
def traced_and_scripted(d):
    model, x = layers().to(d), normal(8, 16).to(d)
    fused = torch.jit.script(fused_chain)
    return [torch.jit.trace(model, x)(x)] + [fused(x, x + 1) for _ in range(3)]


def fused_chain(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a * b + a).relu().sqrt() - b


@on_both
def eight_bits(d):
    a, b = normal(32, 64).to(d).to(torch.float8_e4m3fn), normal(48, 64).to(d).to(torch.float8_e4m3fn)
    whole = [torch.randint(-9, 9, shape, dtype=torch.int8).to(d) for shape in ((32, 64), (64, 48))]
    one = torch.ones((), device=d)
    product = torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16) if d == "cuda" else (a.float() @ b.float().t()).bfloat16()
    return [a.float(), product / 64, torch._int_mm(*whole)]  # rounded to 8 bits from sums of another order


@on_both
def optimizers(d):
    results = []
    kinds = (("SGD", dict(momentum=0.9, nesterov=True)), ("Adam", dict(amsgrad=True)), ("AdamW", dict(fused=True)), ("RMSprop", {}),
             ("Adagrad", {}), ("NAdam", {}), ("RAdam", {}), ("Adadelta", {}), ("LBFGS", {}))  # fmt: skip
    for name, how in kinds:
        parameters = [torch.nn.Parameter(normal(5, 7).to(d)) for _ in range(3)]
        optimizer = getattr(torch.optim, name)(parameters, lr=1e-2, **how)

        def loss():
            optimizer.zero_grad()
            total = sum((p * p).sum() for p in parameters)
            total.backward()
            return total

        for _ in range(3):
            optimizer.step(loss)
        results += parameters
    return results


@on_both
def bags_of_embeddings(d):
    weight = normal(20, 6).to(d).requires_grad_()
    places, starts = torch.randint(0, 20, (30,)).to(d), torch.tensor([0, 4, 9], device=d)
    results = [F.embedding_bag(places, weight, starts, mode=how) for how in ("sum", "mean", "max")]
    sum(r.pow(2).sum() for r in results).backward()
    return results + [weight.grad]


if __name__ == "__main__":
    main()
