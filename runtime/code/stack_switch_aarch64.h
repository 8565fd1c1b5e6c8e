// SPDX-License-Identifier: Apache-2.0
// On AArch64 Boost.Context's switch is as short as can be.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <cstddef>

namespace ptarmigan::runtime {

/// A place to go on, and what was passed to it.
using StackTransfer = boost::context::detail::transfer_t;
using StackEntry = void (*)(StackTransfer);

/// The place where `entry`, which must not return, begins on the stack that ends at `top`.
inline void* start_stack(void* top, std::size_t size, StackEntry entry) {
    return boost::context::detail::make_fcontext(top, size, entry);
}

/// Goes on at `place` with `data`. Returns when somebody goes on at the place that he found in his StackTransfer.
inline StackTransfer switch_stack(void* place, void* data) {
    return boost::context::detail::jump_fcontext(place, data);
}

} // namespace ptarmigan::runtime
