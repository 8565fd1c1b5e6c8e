#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operations on the device beside the CPU's results.

torch_operations.py [OPERATION...] runs all of them or those named, in one process, and prints for each: ok, WRONG and by
how much, or FAIL and the error, with the seconds of the device's part. The exit status is 1 if one is wrong or fails.
Each operation is a function of a device that returns what has to be equal: tensors (copied to the CPU), numbers, texts.
"""

import sys
import time

start = time.time()
import torch
import torch.nn.functional as F

import torch_training

OPERATIONS = {}


def operation(function):
    OPERATIONS[function.__name__] = function
    return function


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape) + 7))


def integers(bound, *shape):
    return torch.randint(0, bound, shape, generator=torch.Generator().manual_seed(sum(shape) + 3))


A, B, V = normal(33, 65), normal(33, 65), normal(1000)


@operation
def ones(d):
    return torch.ones(4, device=d)


@operation
def show(d):
    return repr(torch.arange(6, device=d).float()).replace(", device='cuda:0'", "")


@operation
def arange(d):
    return torch.arange(0, 10, 0.5, device=d)


@operation
def linspace(d):
    return torch.linspace(0, 1, 11, device=d)


@operation
def eye(d):
    return torch.eye(5, device=d)


@operation
def add(d):
    return A.to(d) + B.to(d)


@operation
def mul_scalar(d):
    return A.to(d) * 2.5 - 1


@operation
def broadcast(d):
    return A.to(d) * B.to(d)[0]


@operation
def strided(d):
    return A.to(d).t().contiguous() + 1


@operation
def exp_log(d):
    return torch.log1p(torch.exp(A.to(d)))


@operation
def sin_cos(d):
    return torch.sin(A.to(d)) * torch.cos(B.to(d))


@operation
def tanh_sig(d):
    return torch.tanh(A.to(d)) + torch.sigmoid(B.to(d))


@operation
def pow_(d):
    return A.to(d).abs() ** 1.7


@operation
def where(d):
    a = A.to(d)
    return torch.where(a > 0, a, B.to(d))


@operation
def cast(d):
    return (A.to(d) * 100).to(torch.int32)


@operation
def half(d):
    return (A.to(d).half() + B.to(d).half()).float()


@operation
def bf16(d):
    return (A.to(d).bfloat16() * B.to(d).bfloat16()).float()


@operation
def double(d):
    return A.to(d).double().sqrt().nan_to_num(0)


@operation
def int_ops(d):
    a = integers(1000, 50, 7).to(d)
    return (a * 3 + 7) % 11, a // 3, a << 2, a & 5


@operation
def compare(d):
    return A.to(d) > B.to(d)


@operation
def gelu(d):
    return F.gelu(A.to(d))


@operation
def relu(d):
    return F.relu(A.to(d))


@operation
def silu(d):
    return F.silu(A.to(d))


@operation
def sum_all(d):
    return A.to(d).sum()


@operation
def sum_dim(d):
    return A.to(d).sum(0), A.to(d).sum(1)


@operation
def mean(d):
    return A.to(d).mean(1)


@operation
def max_dim(d):
    return A.to(d).max(1)


@operation
def argmax(d):
    return A.to(d).argmax(), A.to(d).argmin(1)


@operation
def std(d):
    return A.to(d).std(1)


@operation
def norm(d):
    return A.to(d).norm(), A.to(d).norm(dim=1)


@operation
def prod(d):
    return A.to(d)[:, :5].prod(1)


@operation
def any_all(d):
    return (A.to(d) > 2.5).any(), (A.to(d) > -9).all()


@operation
def cumsum(d):
    return V.to(d).cumsum(0), A.to(d).cumsum(1)


@operation
def logsumexp(d):
    return torch.logsumexp(A.to(d), 1)


@operation
def index_select(d):
    return A.to(d).index_select(0, integers(33, 10).to(d))


@operation
def index(d):
    return A.to(d)[integers(33, 10).to(d)]


@operation
def index2(d):
    return A.to(d)[integers(33, 10).to(d), integers(65, 10).to(d)]


@operation
def index_put(d):
    a = A.to(d).clone()
    a[torch.arange(5, device=d)] = 1.5
    return a


@operation
def index_add(d):
    return torch.zeros(33, 65, device=d).index_add(0, torch.arange(20, device=d), A.to(d)[:20])


@operation
def gather(d):
    return A.to(d).gather(1, integers(65, 33, 9).to(d))


@operation
def scatter_add(d):
    return torch.zeros(33, 65, device=d).scatter_add(1, integers(65, 33, 9).to(d), A.to(d)[:, :9].contiguous())


@operation
def masked(d):
    a = A.to(d)
    return a[a > 0.5]


@operation
def nonzero(d):
    return (A.to(d) > 1).nonzero()


@operation
def masked_fill(d):
    a = A.to(d)
    return a.masked_fill(a > 0, -1)


@operation
def cat(d):
    return torch.cat([A.to(d), B.to(d)], 1), torch.stack([A.to(d), B.to(d)])


@operation
def flip_roll(d):
    return A.to(d).flip(0), A.to(d).roll(3, 1)


@operation
def tril(d):
    return A.to(d).tril()


@operation
def sort(d):
    return V.to(d).sort()


@operation
def sort_rows(d):
    return A.to(d).sort(1)


@operation
def sort_large(d):
    return normal(20000).to(d).sort()[0]


@operation
def topk(d):
    return V.to(d).topk(10)


@operation
def unique(d):
    return integers(50, 500).to(d).unique()


@operation
def bincount(d):
    return torch.bincount(integers(20, 500).to(d))


@operation
def median(d):
    return V.to(d).median()


@operation
def searchsorted(d):
    return torch.searchsorted(V.sort()[0].to(d), A.to(d))


@operation
def histc(d):
    return torch.histc(V.to(d), 20, -3, 3)


@operation
def rand(d):
    if d == "cpu":
        return True
    g = torch.rand(10000, device=d)
    return bool(0.48 < g.mean() < 0.52 and g.min() >= 0 and g.max() < 1)


@operation
def randn(d):
    if d == "cpu":
        return True
    g = torch.randn(20000, device=d)
    return bool(abs(g.mean()) < 0.05 and 0.95 < g.std() < 1.05)


@operation
def randperm(d):
    return torch.randperm(1000, device=d).sort()[0]


@operation
def multinomial(d):
    if d == "cpu":
        return True
    m = torch.multinomial(torch.tensor([0.0, 1, 3], device=d), 4000, True)
    return bool((m > 0).all() and 0.7 < (m == 2).float().mean() < 0.8)


@operation
def dropout(d):
    if d == "cpu":
        return True
    x = F.dropout(torch.ones(10000, device=d), 0.3)
    return bool(0.65 < (x > 0).float().mean() < 0.75)


@operation
def softmax(d):
    return F.softmax(A.to(d), 1)


@operation
def softmax_large(d):
    return F.softmax(normal(4, 5000).to(d), 1)


@operation
def log_softmax(d):
    return F.log_softmax(A.to(d), 1)


@operation
def layer_norm(d):
    return F.layer_norm(A.to(d), (65,))


@operation
def layer_norm_v(d):
    return F.layer_norm(normal(8, 64).to(d), (64,))


@operation
def batch_norm(d):
    return F.batch_norm(normal(4, 3, 8, 8).to(d), None, None, training=True)


@operation
def group_norm(d):
    return F.group_norm(normal(4, 6, 8).to(d), 3)


@operation
def rms_norm(d):
    return F.rms_norm(A.to(d), (65,))


@operation
def embedding(d):
    return F.embedding(integers(33, 4, 5).to(d), A.to(d))


@operation
def mse(d):
    return F.mse_loss(A.to(d), B.to(d))


@operation
def cross_entropy(d):
    return F.cross_entropy(A.to(d), integers(65, 33).to(d))


@operation
def avg_pool(d):
    return F.avg_pool2d(normal(2, 3, 8, 8).to(d), 2)


@operation
def max_pool(d):
    return F.max_pool2d(normal(2, 3, 8, 8).to(d), 2)


@operation
def interpolate(d):
    return F.interpolate(normal(2, 3, 8, 8).to(d), scale_factor=2, mode="bilinear")


@operation
def pad(d):
    return F.pad(A.to(d), (1, 2)), F.pad(normal(2, 3, 8, 8).to(d), (1, 1, 1, 1), mode="reflect")


@operation
def matmul(d):
    return normal(64, 48).to(d) @ normal(48, 32).to(d)


@operation
def matmul_odd(d):
    return A.to(d) @ B.to(d).t()


@operation
def mv(d):
    return A.to(d) @ normal(65).to(d)


@operation
def dot(d):
    return V.to(d) @ V.to(d)


@operation
def bmm(d):
    return torch.bmm(normal(3, 16, 20).to(d), normal(3, 20, 12).to(d))


@operation
def matmul_double(d):
    return A.to(d).double() @ B.to(d).double().t()


@operation
def matmul_half(d):
    return (normal(64, 64).half().to(d) @ normal(64, 64).half().to(d)).float()


@operation
def matmul_bf16(d):
    return (normal(64, 64).bfloat16().to(d) @ normal(64, 64).bfloat16().to(d)).float()


@operation
def linear(d):
    return F.linear(normal(16, 32).to(d), normal(24, 32).to(d), normal(24).to(d))


@operation
def einsum(d):
    return torch.einsum("bij,bjk->bik", normal(2, 5, 6).to(d), normal(2, 6, 7).to(d))


@operation
def conv1d(d):
    return F.conv1d(normal(2, 3, 20).to(d), normal(4, 3, 3).to(d))


@operation
def conv2d(d):
    return F.conv2d(normal(2, 3, 12, 12).to(d), normal(4, 3, 3, 3).to(d), padding=1)


@operation
def conv2d_dw(d):
    return F.conv2d(normal(2, 4, 12, 12).to(d), normal(4, 1, 3, 3).to(d), groups=4)


@operation
def sdpa(d):
    return F.scaled_dot_product_attention(
        normal(1, 2, 16, 32).to(d), normal(1, 2, 16, 32).to(d), normal(1, 2, 16, 32).to(d)
    )


@operation
def sdpa_half(d):
    return F.scaled_dot_product_attention(
        *[normal(1, 2, 32, 64).half().to(d) for _ in range(3)], is_causal=True
    ).float()


@operation
def fft(d):
    return torch.fft.rfft(V.to(d)).abs()


@operation
def inverse(d):
    return torch.linalg.inv(normal(8, 8).to(d))


@operation
def solve(d):
    return torch.linalg.solve(normal(8, 8).to(d), normal(8, 2).to(d))


@operation
def cholesky(d):
    a = normal(8, 8).to(d)
    return torch.linalg.cholesky(a @ a.t() + 8 * torch.eye(8, device=d))


@operation
def complex_(d):
    return torch.view_as_real(torch.complex(A, B).to(d) * torch.complex(B, A).to(d))


@operation
def grad(d):
    x = A.to(d).clone().requires_grad_()
    (torch.sin(x) * x.exp()).sum().backward()
    return x.grad


@operation
def grad_index(d):
    x = A.to(d).clone().requires_grad_()
    (x[integers(33, 50).to(d)] ** 2).sum().backward()
    return x.grad


@operation
def grad_softmax(d):
    x = A.to(d).clone().requires_grad_()
    F.cross_entropy(x, integers(65, 33).to(d)).backward()
    return x.grad


@operation
def grad_norm(d):
    x = A.to(d).clone().requires_grad_()
    w = normal(65).to(d).requires_grad_()
    F.layer_norm(x, (65,), w).pow(2).sum().backward()
    return x.grad, w.grad


@operation
def grad_linear(d):
    w = normal(24, 32).to(d).requires_grad_()
    b = normal(24).to(d).requires_grad_()
    F.linear(normal(16, 32).to(d), w, b).relu().sum().backward()
    return w.grad, b.grad


@operation
def grad_embedding(d):
    w = A.to(d).clone().requires_grad_()
    (F.embedding(integers(33, 4, 5).to(d), w) * 2).sum().backward()
    return w.grad


@operation
def grad_conv(d):
    w = normal(4, 3, 3, 3).to(d).requires_grad_()
    F.conv2d(normal(2, 3, 12, 12).to(d), w).sum().backward()
    return w.grad


@operation
def conv_tf32(d):
    """Small images of many channels, for which cuDNN takes its persistent tf32 kernels on Hopper."""
    torch.backends.cudnn.allow_tf32 = True
    parts = []
    for inner, outer, size, stride in (32, 64, 2, 2), (64, 64, 1, 1), (64, 128, 14, 2):
        x = normal(8, inner, size, size).to(d).requires_grad_()
        w = (normal(outer, inner, 3, 3) / (3 * inner**0.5)).to(d).requires_grad_()
        y = F.conv2d(x, w, stride=stride, padding=1)
        y.pow(2).mean().backward()
        parts += [y, x.grad, w.grad]
    return parts


@operation
def grad_dropout(d):
    x = torch.ones(100, device=d, requires_grad=True)
    F.dropout(x, 0.5).sum().backward()
    return bool(((x.grad == 0) | (x.grad == 2)).all())


def train(d, opt, steps=5):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5)).to(d)
    o = opt(m.parameters())
    x = normal(64, 20).to(d)
    y = integers(5, 64).to(d)
    L = []
    for _ in range(steps):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        L.append(l.item())
    return torch.tensor(L)


@operation
def mlp_sgd(d):
    return train(d, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9))


@operation
def mlp_adam(d):
    return train(d, lambda p: torch.optim.Adam(p, 0.01))


@operation
def mlp_adamw_foreach(d):
    return train(d, lambda p: torch.optim.AdamW(p, 0.01, foreach=True))


@operation
def amp(d):
    with torch.autocast(d.split(":")[0], dtype=torch.bfloat16):
        return F.linear(normal(16, 32).to(d), normal(24, 32).to(d)).float()


@operation
def foreach(d):
    return torch._foreach_add([A.to(d), B.to(d)], 2.0)


@operation
def quantile(d):
    return V.to(d).quantile(0.3)


@operation
def copy_back(d):
    a = A.to(d)
    b = torch.empty_like(a)
    b.copy_(a, non_blocking=True)
    return b


@operation
def fft_2d(d):
    a = normal(12, 30).to(d)
    return torch.view_as_real(torch.fft.fft2(a)), torch.fft.irfft(torch.fft.rfft(a))


def pointwise(a, b):
    return torch.sin(a) * b + a.relu() / (1 + b * b)


def reduction(a, b):
    return (a * b).sum(1), torch.softmax(a, 1).max(1).values


@operation
def compile_pointwise(d):
    return (pointwise if d == "cpu" else torch.compile(pointwise))(A.to(d), B.to(d))


@operation
def compile_reduction(d):
    return (reduction if d == "cpu" else torch.compile(reduction))(A.to(d), B.to(d))


@operation
def rnn(d):
    torch.manual_seed(0)
    m = torch.nn.LSTM(8, 16).to(d)
    return m(normal(5, 2, 8).to(d))[0].detach()


for model in "train_mlp", "train_resnet", "train_scaled", "train_gpt", "train_gpt_bf16":
    operation(getattr(torch_training, model))


def results(value):
    """A list of tensors on the CPU and other values."""
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in results(part)]
    return [value.detach().cpu() if torch.is_tensor(value) else value]


# Products of halves, and those for which cuDNN may take tf32; all others are f32 sums in another order.
COARSE = {
    "matmul_half", "matmul_bf16", "amp", "sdpa_half", "conv1d", "conv2d", "conv2d_dw", "conv_tf32", "grad_conv", "rnn",
    "train_gpt_bf16", "train_resnet", "train_scaled",
}  # fmt: skip
# Losses of many steps, each on what the one before made.
TRAINED = {"train_mlp", "train_gpt"}


def difference(name, expected, got):
    if torch.is_tensor(expected):
        if expected.shape != got.shape or expected.dtype != got.dtype:
            return f"{got.dtype}{tuple(got.shape)} instead of {expected.dtype}{tuple(expected.shape)}"
        if not expected.is_floating_point():
            return None if torch.equal(expected, got) else f"{int((expected != got).sum())} values differ"
        relative, absolute = (2e-2, 2e-2) if name in COARSE else (2e-3, 1e-3) if name in TRAINED else (2e-4, 5e-5)
        if torch.allclose(expected.double(), got.double(), rtol=relative, atol=absolute, equal_nan=True):
            return None
        return f"differs by {float((expected.double() - got.double()).abs().nan_to_num(float('inf')).max()):.3g}"
    return None if expected == got else f"{got} instead of {expected}"


def main(names):
    print(f"import: {time.time() - start:.1f} s", flush=True)
    failures = 0
    for name in names:
        expected = results(OPERATIONS[name]("cpu"))
        begin = time.time()
        try:
            got = results(OPERATIONS[name]("cuda"))
            torch.cuda.synchronize()
        except Exception as error:  # whatever stops it is the answer
            print(f"FAIL  {name}: {str(error).splitlines()[0]}", flush=True)
            failures += 1
            try:  # the next wait says it again, where a library hid it
                torch.cuda.synchronize()
            except Exception:
                pass
            continue
        problems = [difference(name, *pair) for pair in zip(expected, got)]
        problems = [problem for problem in problems if problem] + ["number of results"] * (len(expected) != len(got))
        failures += bool(problems)
        print(
            f"{'WRONG' if problems else 'ok   '} {name} {time.time() - begin:.2f} s {'; '.join(problems)}".rstrip(),
            flush=True,
        )
    print(f"{len(names) - failures} of {len(names)} operations hold, {time.time() - start:.0f} s")
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(OPERATIONS)) != 0)
