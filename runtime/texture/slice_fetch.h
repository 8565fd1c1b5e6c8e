// SPDX-License-Identifier: Apache-2.0
// Fetches from one texture for all lanes of a step that plane_fetch does not do: volumes, cubes, and levels.
#pragma once

#include "runtime/texture/texture.h"
#include "runtime/texture/vector_code.h"
#include "translator/kernel_abi.h"

#include <array>

namespace ptarmigan::runtime {

/// Does the call for the active lanes but for those that it returns: all of them if it is not of this kind, else those
/// that are rare (infinities, NaNs, edges of cubes). The others have the bits that the sampler gives. `texture` is
/// what the handle of every active lane stands for.
std::uint64_t fetch_slices(abi::TextureCall& call, const TextureObject& texture, VectorCode most = VectorCode::avx512);

/// Of all lanes, those at rest too.
using Textures = std::array<const TextureObject*, 32>;
/// Likewise from several textures that differ only in size: planes too.
std::uint64_t fetch_slices(abi::TextureCall& call, const Textures& textures, VectorCode most = VectorCode::avx512);

} // namespace ptarmigan::runtime
