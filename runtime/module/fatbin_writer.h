// SPDX-License-Identifier: Apache-2.0
// Makes what cuLinkComplete hands out. NVIDIA's driver gives a cubin; ours is a fat binary container
// (the layout in fatbin.cpp) with one PTX entry, plain, the linked text. Every call that loads a
// module takes it, from memory or from a file, and so does cuLinkAddData.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ptarmigan::runtime {

/// `text` must be PTX with a sound header: its version and target go into the entry.
std::vector<std::uint8_t> write_container(std::string_view text);

} // namespace ptarmigan::runtime
