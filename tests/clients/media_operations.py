#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI on the device beside itself on the CPU, and nvImageCodec (nvJPEG, nvJPEG2000, nvTIFF) beside Pillow.

Decoders and interpolation round differently on the device: bytes are compared to a few steps.
"""

import io

import numpy as np
from nvidia import nvimgcodec
from nvidia.dali import fn, pipeline_def, types
from operations import main, operation
from PIL import Image

G = np.random.default_rng(0)
IMAGES = [G.integers(0, 255, (40, 50, 3), dtype=np.uint8), G.integers(0, 255, (30, 60, 3), dtype=np.uint8)]
SOUNDS = [np.sin(np.arange(4000, dtype=np.float32) / 9), np.cos(np.arange(3000, dtype=np.float32) / 5)]
Y, X = np.mgrid[0:64, 0:80]
PICTURE = np.stack([128 + 100 * np.sin(X / 9), 128 + 90 * np.cos(Y / 7), X + Y], -1).clip(0, 255).astype(np.uint8)


def outputs(build, device):
    @pipeline_def(batch_size=2, num_threads=1, device_id=0, seed=1)
    def pipeline():
        return build(device)

    made = pipeline()
    made.build()
    return [np.asarray(batch.as_cpu()[i]) for batch in made.run() for i in range(2)]


def close(got, expected, steps):
    """A pair that is equal if both differ by `steps` at most."""
    return (got.shape == expected.shape and bool(np.abs(got.astype(float) - expected).max() <= steps), True)


def dali(build):
    """Floats as usual; bytes to a step of rounding."""
    pairs = zip(outputs(build, "gpu"), outputs(build, "cpu"))
    return [close(*pair, 1) if pair[1].dtype == np.uint8 else pair for pair in pairs]


def images(device, values=IMAGES):
    batch = fn.external_source(lambda: values, batch=True)
    return batch.gpu() if device == "gpu" else batch


@operation
def dali_resize():
    return dali(lambda device: fn.resize(images(device), resize_x=32, resize_y=24))


@operation
def dali_normalized_crop():
    settings = {"crop": (24, 24), "mean": [120, 110, 100], "std": [50, 51, 52], "mirror": 1, "output_layout": "CHW"}
    return dali(lambda device: fn.crop_mirror_normalize(images(device), dtype=types.FLOAT, **settings))


@operation
def dali_colours():
    return dali(
        lambda device: (
            fn.hsv(images(device), hue=30.0, saturation=1.2),
            fn.brightness_contrast(images(device), brightness=1.1, contrast=0.9),
            fn.color_space_conversion(images(device), image_type=types.RGB, output_type=types.YCbCr),
        )
    )


@operation
def dali_warps():
    return dali(
        lambda device: (
            fn.rotate(images(device), angle=20.0, fill_value=0),
            fn.warp_affine(images(device), matrix=[0.9, 0.1, 2, -0.1, 1.1, -1], fill_value=0),
        )
    )


@operation
def dali_filters():
    return dali(lambda device: (fn.gaussian_blur(images(device), sigma=1.5), fn.laplacian(images(device), window_size=3)))


@operation
def dali_arithmetic():
    return dali(lambda device: (images(device) * 2 + 1, fn.cast(images(device), dtype=types.FLOAT) / 3.0))


@operation
def dali_reductions():
    return dali(
        lambda device: (
            fn.reductions.mean(images(device)),
            fn.reductions.max(images(device), axes=[0]),
            fn.normalize(fn.cast(images(device), dtype=types.FLOAT)),
        )
    )


@operation
def dali_layouts():
    return dali(
        lambda device: (
            fn.slice(images(device), 5, 20, axes=[1]),
            fn.transpose(images(device), perm=[2, 0, 1]),
            fn.flip(images(device)),
        )
    )


@operation
def dali_spectrum():
    def build(device):
        spectrum = fn.spectrogram(images(device, SOUNDS), nfft=256, window_length=256, window_step=128)
        return fn.mel_filter_bank(spectrum, sample_rate=16000, nfilter=20)

    pairs = zip(outputs(build, "gpu"), outputs(build, "cpu"))
    return [(got / expected.max(), expected / expected.max()) for got, expected in pairs]


def encoded(kind, **settings):
    file = io.BytesIO()
    Image.fromarray(PICTURE).save(file, kind, **settings)
    return file.getvalue()


def opened(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


@operation
def dali_jpeg():
    data = [np.frombuffer(encoded("JPEG", quality=92, subsampling=0), np.uint8)] * 2

    def build(device):
        files = fn.external_source(lambda: data, batch=True, dtype=types.UINT8)
        return fn.decoders.image(files, device="mixed" if device == "gpu" else "cpu", output_type=types.RGB)

    return [close(*pair, 4) for pair in zip(outputs(build, "gpu"), outputs(build, "cpu"))]


def decoded(steps, *arguments, **settings):
    data = encoded(*arguments, **settings)
    return [close(np.asarray(nvimgcodec.Decoder().decode(data).cpu()), opened(data), steps)]


@operation
def codec_jpeg():
    return decoded(4, "JPEG", quality=92) + decoded(4, "JPEG", subsampling=0) + decoded(4, "JPEG", progressive=True)


@operation
def codec_lossless():
    return decoded(0, "JPEG2000") + decoded(0, "TIFF") + decoded(0, "PNG")


@operation
def codec_encode():
    image = nvimgcodec.as_image(PICTURE).cuda()
    encoder = nvimgcodec.Encoder()
    exact = nvimgcodec.EncodeParams(quality_type=nvimgcodec.QualityType.LOSSLESS)
    return [
        close(opened(bytes(encoder.encode(image, "jpeg"))), PICTURE, 12),
        close(opened(bytes(encoder.encode(image, "jpeg2k", params=exact))), PICTURE, 0),
    ]


if __name__ == "__main__":
    main()
