// SPDX-License-Identifier: Apache-2.0
// The service behind texture and surface instructions.
#pragma once

#include "translator/kernel_abi.h"

namespace ptarmigan::runtime {

/// abi::Services::texture.
void texture_service(abi::CtaContext* cta, std::uint32_t step, abi::TextureCall* call);

} // namespace ptarmigan::runtime
