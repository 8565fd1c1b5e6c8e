# The longest tests start first, so that no core waits for one at the end: seconds of CPU time where these are ten or more
# (2026-11-26, 2 cores). ctest reads this
# behind the tests of all folders, and passes over names that it does not know.
set(costs
    unit_kernels_default 78 nvcc_thrust_reduce_static 38 unit_arithmetic 33 unit_kernels_w8_v3 29 unit_translator 29
    variants_flash_attention_backward 28 names_stuck_kernels 27 nvcc_thrust_sort_static 27 recording_arithmetic_forms 24 robustness_translate 24
    nvcc_cub_scan_static 23 reject 22 unit_kernels_counters 21 unit_lower 21 recording_tensor_core_instructions 19 unit_kernels_w1 19
    litmus_schedule 18 corpus_cuda_ptx 17 unit_kernels_least 16 unit_arithmetic_least 15 recording_exhaustive_forms 15 variants_whole_device 15
    variants_wgmma_gemm 15 unit_kernels_fibers 14 fuzz_recorded 12 litmus 12 variants_flash_attention 12 unit_analysis 11
    recording_async_faults 11 recording_tensor_copies_own_cta 10 recording_divergence_schedule 10 recording_tensor_core_warpgroups 10)
while(costs)
    list(POP_FRONT costs test seconds)
    set_tests_properties(${test} PROPERTIES COST ${seconds})
endwhile()
