// SPDX-License-Identifier: Apache-2.0
// The common fetches: one texture of one or two dimensions, without levels, for all lanes of a step.
#pragma once

#include "runtime/texture/texture.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::runtime {

/// Code for which CPUs; what the CPU lacks is replaced by the best that it has.
enum class PlaneCode { portable, avx2, avx512 };

/// Does the whole call, with the bits that the sampler gives. False if it is not of this kind: then nothing was done.
/// `texture` is what the handle of every active lane stands for.
bool fetch_plane(abi::TextureCall& call, const TextureObject& texture, PlaneCode most = PlaneCode::avx512);

} // namespace ptarmigan::runtime
