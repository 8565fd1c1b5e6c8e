// SPDX-License-Identifier: Apache-2.0
// The common fetches: one texture of one or two dimensions, without levels, for all lanes of a step.
#pragma once

#include "runtime/texture/texture.h"
#include "runtime/texture/vector_code.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::runtime {

/// Does the whole call, with the bits that the sampler gives. False if it is not of this kind: then nothing was done.
/// `texture` is what the handle of every active lane stands for.
bool fetch_plane(abi::TextureCall& call, const TextureObject& texture, VectorCode most = VectorCode::avx512);

} // namespace ptarmigan::runtime
