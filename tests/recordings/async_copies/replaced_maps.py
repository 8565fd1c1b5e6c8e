#!/usr/bin/env python3
# What loads do through maps of which tensormap.replace has replaced fields to what no encode entry allows.
# usage: replaced_maps.py LIBCUDA            all cases, each in a process of its own; a line per case: name, error code, completed, raw mbarrier, hex
#        replaced_maps.py LIBCUDA --case NAME
import ctypes, subprocess, sys
C = ctypes
SIZES = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4]        # CUtensorMapDataType 0..12: u8 u16 u32 i32 u64 i64 f16 f32 f64 bf16 f32ftz tf32 tf32ftz
ELEM =  [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12]      # .elemtype codes: u8 u16 u32 s32 u64 s64 f16 f32 f32.ftz f64 bf16 tf32 tf32.ftz

def cases():
    c = {}
    # name -> (type, dim0 elements, box0, swizzle, x, replaced lines, row bytes, rows)
    for t in range(13):
        n = SIZES[t]
        c[f"fill_nan_left_type{t}"] = (t, 64 // n, 32 // n, 0, -(16 // n), ["fill_mode.shared::cta.b1024.b32 [%m], 1"], 32, 4)
        c[f"fill_nan_right_type{t}"] = (t, 64 // n - 1, 32 // n, 0, 48 // n, ["fill_mode.shared::cta.b1024.b32 [%m], 1"], 32, 4)
    for t, boxes in ((0, (5, 20, 33)), (1, (3, 9)), (2, (1, 3, 5)), (4, (1, 3))):
        for b in boxes:
            for s in (0, 1, 3):
                c[f"box_{b}_type{t}_swizzle{s}"] = (t, 256 // SIZES[t], 16 // SIZES[t], s, 0, [f"box_dim.shared::cta.b1024.b32 [%m], 0, {b}"], b * SIZES[t], 4)
    for s, b in ((1, 16), (1, 64), (2, 32), (2, 64), (3, 64)):
        c[f"wide_box_{b}_swizzle{s}"] = (2, 64, 8, s, 0, [f"box_dim.shared::cta.b1024.b32 [%m], 0, {b}"], 4 * b, 4)
    for st in (0, 2, 3, 8, 9):
        c[f"element_stride1_{st}"] = (2, 64, 8, 0, 0, [f"element_stride.shared::cta.b1024.b32 [%m], 1, {st}"], 32, (4 + max(st, 1) - 1) // max(st, 1))
    for st in (8, 24, 16, 0):
        c[f"global_stride_{st}"] = (2, 64, 8, 0, 0, [f"global_stride.shared::cta.b1024.b64 [%m], 0, {st}"], 32, 4)
    for v in (0, 257, 512):
        c[f"box0_{v}"] = (2, 64, 8, 0, 0, [f"box_dim.shared::cta.b1024.b32 [%m], 0, {v}"], 4 * v if v else 0, 4)
    for v in (0, 1):
        c[f"global_dim0_{v}"] = (2, 64, 8, 0, 0, [f"global_dim.shared::cta.b1024.b32 [%m], 0, {v}"], 32, 4)
    for t in range(13):
        c[f"elemtype_{ELEM[t]}_of_u32"] = (2, 64, 8, 0, 0, [f"elemtype.shared::cta.b1024.b32 [%m], {ELEM[t]}"], 8 * SIZES[t], 4)
    return c

def ptx(replaced, expected):
    lines = []
    for r in replaced:                       # values in registers where the field wants them
        head, _, value = r.rpartition(", ")
        if head.startswith(("box_dim", "global_dim", "element_stride")): lines.append(f"mov.u32 %r9, {value}; tensormap.replace.tile.{head}, %r9;")
        elif head.startswith("global_stride"): lines.append(f"mov.u64 %l9, {value}; tensormap.replace.tile.{head}, %l9;")
        else: lines.append(f"tensormap.replace.tile.{r};")
    body = "\n".join(lines).replace("%m", "%r3")
    return f"""
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 map, .param .u64 scratch, .param .u64 out, .param .u32 x)
{{
.shared .align 1024 .b8 tile[16384]; .shared .align 128 .b8 m[128]; .shared .align 8 .b64 bar;
.reg .b32 %r<20>; .reg .b64 %l<20>; .reg .pred %p<6>;
ld.param.u64 %l1,[map]; ld.param.u64 %l2,[scratch]; ld.param.u64 %l3,[out]; ld.param.u32 %r1,[x];
mov.u32 %r2,%tid.x; mov.u32 %r3,m; mov.u32 %r4,tile; mov.u32 %r5,bar; setp.eq.u32 %p0,%r2,0;
mov.u32 %r6,%r2;
F: shl.b32 %r7,%r6,2; add.u32 %r7,%r7,%r4; st.shared.u32 [%r7],0xeeeeeeee; add.u32 %r6,%r6,32; setp.lt.u32 %p1,%r6,4096; @%p1 bra F;
shl.b32 %r7,%r2,2; cvt.u64.u32 %l4,%r7; add.u64 %l4,%l4,%l1; ld.global.u32 %r8,[%l4]; add.u32 %r7,%r7,%r3; st.shared.u32 [%r7],%r8;
@%p0 mbarrier.init.shared.b64 [%r5],1; fence.proxy.async; bar.sync 0;
@!%p0 bra P;
{body}
P: bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%l2],[%r3],128;
fence.proxy.tensormap::generic.acquire.gpu [%l2],128;
mov.u32 %r10,1;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _,[%r5],{expected};
@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r4],[%l2,{{%r1,%r10}}],[%r5];
mov.u32 %r11,0;
W: mbarrier.try_wait.parity.shared.b64 %p2,[%r5],0,1000; @%p2 bra D; add.u32 %r11,%r11,1; setp.lt.u32 %p3,%r11,20000; @%p3 bra W;
D: bar.sync 0; ld.shared.u64 %l5,[%r5]; selp.u32 %r12,1,0,%p2; @%p0 st.global.u64 [%l3],%l5; @%p0 st.global.u32 [%l3+8],%r12;
mov.u32 %r6,%r2;
G: shl.b32 %r7,%r6,2; cvt.u64.u32 %l6,%r7; add.u64 %l6,%l6,%l3; add.u32 %r7,%r7,%r4; ld.shared.u32 %r8,[%r7]; st.global.u32 [%l6+16],%r8;
add.u32 %r6,%r6,32; setp.lt.u32 %p1,%r6,4096; @%p1 bra G;
ret;
}}
"""

def run_case(lib, name):
    cu = C.CDLL(lib)
    t, dim0, box0, swizzle, x, replaced, row, rows = cases()[name]
    def ok(code, what):
        if code: print(name, "error", code, what); sys.exit(0)
    dev, ctx, mod, fn = C.c_int(), C.c_void_p(), C.c_void_p(), C.c_void_p()
    ok(cu.cuInit(0), "init"); cu.cuDeviceGet(C.byref(dev), 0); ok(cu.cuDevicePrimaryCtxRetain(C.byref(ctx), dev), "ctx"); cu.cuCtxSetCurrent(ctx)
    ok(cu.cuModuleLoadData(C.byref(mod), ptx(replaced, row * rows).encode()), "load"); ok(cu.cuModuleGetFunction(C.byref(fn), mod, b"k"), "fn")
    def alloc(n):
        p = C.c_uint64(); ok(cu.cuMemAlloc_v2(C.byref(p), C.c_size_t(n)), "alloc"); return p
    tensor, scratch, out, gmap = alloc(65536), alloc(256), alloc(65536), alloc(256)
    data = bytes((i * 7 + (i >> 8) * 13 + 1) & 0xff for i in range(65536)); cu.cuMemcpyHtoD_v2(tensor, data, C.c_size_t(65536))
    raw = (C.c_uint8 * 256)(); at = (C.addressof(raw) + 63) & ~63
    dims, strides = (C.c_uint64 * 2)(dim0, 16), (C.c_uint64 * 1)(256)
    box, step = (C.c_uint32 * 2)(box0, 4), (C.c_uint32 * 2)(1, 1)
    ok(cu.cuTensorMapEncodeTiled(C.c_void_p(at), t, C.c_uint32(2), tensor, dims, strides, box, step, 0, swizzle, 0, 0), "encode")
    cu.cuMemcpyHtoD_v2(gmap, C.string_at(at, 128), C.c_size_t(128))
    cu.cuMemsetD8_v2(out, C.c_uint8(0), C.c_size_t(65536))
    xs = C.c_uint32(x & 0xffffffff)
    args = (C.c_void_p * 4)(*[C.cast(C.byref(v), C.c_void_p) for v in (gmap, scratch, out, xs)])
    ok(cu.cuLaunchKernel(fn, 1, 1, 1, 32, 1, 1, 0, None, args, None), "launch"); ok(cu.cuCtxSynchronize(), "run")
    result = (C.c_uint8 * 16400)(); ok(cu.cuMemcpyDtoH_v2(result, out, C.c_size_t(16400)), "copy")
    b = bytes(result); tile = b[16:]
    last = max((i for i in range(len(tile)) if tile[i] != 0xee), default=-1)
    print(name, "completed", b[8], "bar", b[7::-1].hex(), tile[:min(last + 1, 2048)].hex())

if len(sys.argv) > 3: run_case(sys.argv[1], sys.argv[3])
else:
    for name in cases():
        try:
            r = subprocess.run([sys.executable, sys.argv[0], sys.argv[1], "--case", name], capture_output=True, text=True, timeout=60)
            print(r.stdout.strip() or f"{name} exit {r.returncode} {r.stderr.strip()[-200:]}", flush=True)
        except subprocess.TimeoutExpired: print(name, "timeout", flush=True)
