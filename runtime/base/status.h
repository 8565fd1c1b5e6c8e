// SPDX-License-Identifier: Apache-2.0
// The result of every driver operation. The numbers are CUresult's, so the shim only casts.
#pragma once

namespace ptarmigan::runtime {

enum class [[nodiscard]] Status : int{
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    deinitialized = 4,
    no_device = 100,
    invalid_device = 101,
    invalid_image = 200,
    invalid_context = 201,
    no_binary_for_gpu = 209,
    unsupported_limit = 215,
    peer_access_unsupported = 217,
    invalid_ptx = 218,
    jit_compiler_not_found = 221,
    unsupported_ptx_version = 222,
    unsupported_exec_affinity = 224,
    invalid_source = 300,
    file_not_found = 301,
    operating_system = 304,
    invalid_handle = 400,
    illegal_state = 401,
    not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    launch_out_of_resources = 701,
    launch_timeout = 702,
    peer_access_already_enabled = 704,
    peer_access_not_enabled = 705,
    primary_context_active = 708,
    context_is_destroyed = 709,
    assert_failed = 710,
    host_memory_already_registered = 712,
    host_memory_not_registered = 713,
    hardware_stack_error = 714,
    illegal_instruction = 715,
    misaligned_address = 716,
    invalid_address_space = 717,
    invalid_pc = 718,
    launch_failed = 719,
    cooperative_launch_too_large = 720,
    not_permitted = 800,
    not_supported = 801,
    invalid_cluster_size = 912,
    unknown = 999,
};

} // namespace ptarmigan::runtime
