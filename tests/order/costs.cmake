# The longest tests start first, so that no core waits for one at the end: seconds of CPU time where these are ten or more
# (2026-11-26, 2 cores). ctest reads this
# behind the tests of all folders, and passes over names that it does not know.
set(costs
    variants_flash_attention_backward 50 unit_kernels_default 45 unit_arithmetic 33 variants_wgmma_gemm 25 unit_kernels_fibers 30
    unit_kernels_w1 30 unit_kernels_w8_v3 30 unit_kernels_counters 30 unit_kernels_least 30 fuzz_recorded 26 names_stuck_kernels 27
    robustness_translate 25 reject 24 recording_arithmetic_forms 22 unit_arithmetic_least 20 recording_atomic_forms 20
    recording_exhaustive_forms 19 corpus_cuda_ptx 18 unit_lower 18 litmus 17 variants_mma_gemm 16 variants_whole_device 14
    recording_tensor_core_instructions 15 variants_math_functions 12 variants_wmma_gemm 12 variants_waiting_loops 12
    recording_divergence_default 12 recording_divergence_w1 12 recording_divergence_w8 12 recording_divergence_counters 12
    recording_tensor_core_warpgroups 11 recording_tensor_copies 11 recording_random_async_w1 10 recording_constants 10)
while(costs)
    list(POP_FRONT costs test seconds)
    set_tests_properties(${test} PROPERTIES COST ${seconds})
endwhile()
