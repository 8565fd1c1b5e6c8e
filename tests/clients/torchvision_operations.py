#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torchvision, timm, torchaudio, torchmetrics, PyTorch Geometric, einops and Lightning on the device beside the CPU."""

import numpy as np
import torch
import torchvision.models as models
import torchvision.ops as ops
from operations import main
from torch_pairs import on_both, trained

normal = torch.randn


def boxes(count):
    corners = torch.rand(count, 4) * 50
    corners[:, 2:] += corners[:, :2] + 1
    return corners


@on_both
def suppression(d):
    b, scores, kinds = (t.to(d) for t in (boxes(300), torch.rand(300), torch.randint(0, 4, (300,))))
    return [ops.nms(b, scores, 0.5), ops.batched_nms(b, scores, kinds, 0.5), ops.box_iou(b, b), ops.generalized_box_iou(b, b)]


@on_both
def regions(d):
    rows = torch.tensor([[0, 1.0, 1, 15, 12], [1, 3, 2, 18, 19]], device=d)
    results = []
    for region, size in ((ops.roi_align, 5), (ops.roi_pool, 5), (ops.ps_roi_align, 3), (ops.ps_roi_pool, 3)):
        x = normal(2, 18, 20, 20).to(d).requires_grad_()
        y = region(x, rows, size, 0.8)
        y.pow(2).sum().backward()
        results += [y, x.grad]
    return results


@on_both
def deformed_convolution(d):
    shapes = (2, 6, 12, 12), (2, 18, 12, 12), (8, 6, 3, 3)
    x, offsets, weights = (normal(*shape).to(d).requires_grad_() for shape in shapes)
    y = ops.deform_conv2d(x, offsets, weights, padding=1, mask=torch.rand(2, 9, 12, 12).to(d))
    y.pow(2).mean().backward()
    return [y, x.grad, offsets.grad, weights.grad]


@on_both
def transforms(d):
    import torchvision.transforms.functional as t

    image = torch.rand(3, 40, 50).to(d)
    bytes_of_image = (image * 255).to(torch.uint8)
    return [t.resize(image, [20, 25]), t.gaussian_blur(image, 5), t.adjust_hue(image, 0.2), t.normalize(image, [0.5] * 3, [0.5] * 3),
            t.rotate(bytes_of_image, 30.0), t.affine(bytes_of_image, 10, [1, 2], 1.2, [3.0]), t.equalize(bytes_of_image),
            t.hflip(bytes_of_image)]  # fmt: skip


@torch.no_grad()
def forward(model, device, *shape):
    for module in model.modules():  # heads of zeros would hide what is before them
        if isinstance(module, torch.nn.Linear) and not module.weight.any():
            torch.nn.init.normal_(module.weight, std=0.05)
    return model.eval().to(device)(normal(*shape).to(device))


@on_both
def resnet50(d):
    return forward(models.resnet50(num_classes=10), d, 2, 3, 96, 96)


@on_both
def vision_transformer(d):
    return forward(models.VisionTransformer(64, 16, 3, 4, 128, 256, num_classes=10), d, 2, 3, 64, 64)


@on_both
def swin(d):
    return forward(models.swin_t(num_classes=10), d, 1, 3, 64, 64)


@on_both
def detection(d):
    model = models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=4, box_detections_per_img=20
    ).eval()
    with torch.no_grad():
        found = model.to(d)([torch.rand(3, 120, 160).to(d)])[0]
    return [found["boxes"], found["scores"], found["labels"]]


@on_both
def resnet18_training(d):
    x, wanted = normal(4, 3, 64, 64).to(d), torch.tensor([1, 2, 3, 4], device=d)
    loss = lambda model: torch.nn.functional.cross_entropy(model(x), wanted)
    return trained(models.resnet18(num_classes=10), d, loss, torch.optim.SGD, steps=2)


@on_both
def resnet18_channels_last_bf16(d):
    model = models.resnet18(num_classes=10).eval().to(d, memory_format=torch.channels_last)
    x = normal(2, 3, 64, 64).to(d, memory_format=torch.channels_last)
    with torch.no_grad(), torch.autocast(d, torch.bfloat16):
        return model(x) * 0.1


@on_both
def timm_models(d):
    import timm

    make = lambda name: timm.create_model(name, num_classes=10)
    return [forward(make(name), d, 1, 3, 224, 224) for name in ("vit_tiny_patch16_224", "convnextv2_atto", "efficientnet_lite0")]


@on_both
def audio(d):
    import torchaudio

    wave = normal(1, 8000).to(d)
    spectrum = torchaudio.transforms.MelSpectrogram(8000, n_fft=256, n_mels=32).to(d)(wave)
    scores, shape = normal(20, 2, 12).log_softmax(-1).to(d), torch.tensor([3, 3])
    ctc = torch.nn.functional.ctc_loss(scores, torch.tensor([[1, 2, 3], [4, 5, 6]], device=d), torch.tensor([20, 20]), shape)
    x, whole = normal(1, 4, 3, 5).to(d).requires_grad_(), lambda *values: torch.tensor(values, dtype=torch.int32, device=d)
    transducer = torchaudio.functional.rnnt_loss(x, whole([1, 2]), whole(4), whole(2))
    transducer.backward()
    return [spectrum, torchaudio.transforms.Resample(8000, 4000).to(d)(wave), ctc, transducer, x.grad]


@on_both
def metrics(d):
    import torchmetrics

    scores, wanted = normal(50, 5).softmax(-1).to(d), torch.randint(0, 5, (50,)).to(d)
    kinds = torchmetrics.Accuracy, torchmetrics.AUROC, torchmetrics.ConfusionMatrix, torchmetrics.AveragePrecision
    return [kind("multiclass", num_classes=5).to(d)(scores, wanted) for kind in kinds]


@on_both
def graph_networks(d):
    from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_mean_pool
    from torch_geometric.utils import scatter, softmax

    x, edges, groups = normal(30, 8).to(d), torch.randint(0, 30, (2, 80)).to(d), (torch.arange(30) // 10).to(d)
    results = [scatter(x, groups, reduce=how) for how in ("sum", "mean", "max", "min")] + [softmax(x[:, 0], groups)]
    for layer in (GCNConv(8, 6), GATConv(8, 4, 2), SAGEConv(8, 6), GINConv(torch.nn.Linear(8, 6))):
        y = layer.to(d)(x, edges)
        y.pow(2).mean().backward()
        results += [global_mean_pool(y, groups)] + [p.grad for p in layer.parameters()]
    return results


@on_both
def einops(d):
    from einops import rearrange, reduce, repeat

    x = normal(2, 8, 8, 3).to(d)
    patches = rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=2)
    return [patches, reduce(x, "b h w c -> b c", "max"), repeat(x[0], "h w c -> h (w r) c", r=2)]


@on_both
def lightning_fit(d):
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
            self.losses = []

        def training_step(self, batch, _):
            loss = (self.layers(batch[0]) - batch[1]).pow(2).mean()
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-2)

    model, x = Model(), normal(32, 8)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, :1]), batch_size=8)
    lightning.Trainer(max_epochs=2, accelerator="gpu" if d == "cuda" else "cpu", devices=1, logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False).fit(model, data)  # fmt: skip
    return np.array(model.losses, np.float32)


if __name__ == "__main__":
    main()
