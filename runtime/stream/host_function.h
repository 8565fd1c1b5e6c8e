// SPDX-License-Identifier: Apache-2.0
// Which threads are inside a host function of a stream (cuLaunchHostFunc, cuStreamAddCallback).
#pragma once

namespace ptarmigan::runtime {

class Stream;

/// The stream whose host function the calling thread runs; null: none.
const Stream* stream_of_host_function();
inline bool in_host_function() {
    return stream_of_host_function() != nullptr;
}

/// While it lives the calling thread is inside a host function of `stream`.
class HostFunctionScope {
public:
    explicit HostFunctionScope(const Stream& stream);
    ~HostFunctionScope();
    HostFunctionScope(const HostFunctionScope&) = delete;
    HostFunctionScope& operator=(const HostFunctionScope&) = delete;

private:
    const Stream* outer_;
};

} // namespace ptarmigan::runtime
