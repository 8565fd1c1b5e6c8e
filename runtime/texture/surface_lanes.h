// SPDX-License-Identifier: Apache-2.0
// Loads and stores of one surface for all lanes of a step at once.
#pragma once

#include "runtime/texture/texture.h"
#include "runtime/texture/vector_code.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::runtime {

/// Does the whole call as the surface unit does it lane by lane. False if it is not of this kind (suld.b and sust.b),
/// or if a lane faults: then nothing was done. `surface` is what the handle of every active lane stands for.
bool access_surface(abi::TextureCall& call, const TextureObject& surface, VectorCode most = VectorCode::avx512);

} // namespace ptarmigan::runtime
