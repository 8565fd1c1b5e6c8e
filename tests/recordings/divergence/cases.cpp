// SPDX-License-Identifier: Apache-2.0
#include "tests/recordings/divergence/cases.h"

namespace divergence {
namespace {

/// Lanes below 16 run `low`, the others `high`.
std::string halves(const std::string& low, const std::string& high) {
    return "setp.lt.u32 %p, %l, 16; @%p bra LOW;\n" + high + "\nbra.uni JOIN;\nLOW:\n" + low + "\nJOIN:\n";
}

/// A code for each lane that no two share.
const std::string values = "mul.lo.u32 %a, %t, 7; add.u32 %a, %a, 100; and.b32 %x, %t, 5; setp.ne.u32 %q, %x, 0;\n";
/// Something between arms that keeps a compiler from merging them.
const std::string differently = "mul.lo.u32 %a, %t, 11; add.u32 %a, %a, 5000; and.b32 %x, %t, 3; setp.eq.u32 %q, %x, 0;\n";

std::vector<Case> collectives() {
    const std::string bfly = "shfl.sync.bfly.b32 %d, %a, 31, 31, 0xffffffff;\n", ballot = "vote.sync.ballot.b32 %d, %q, 0xffffffff;\n";
    const std::string any = "vote.sync.any.pred %s, %q, 0xffffffff; selp.u32 %d, 1, 0, %s;\n";
    const std::string match = "and.b32 %x, %a, 7; match.any.sync.b32 %d, %x, 0xffffffff;\n";
    const std::string all = "match.all.sync.b32 %d|%s, %x, 0xffffffff;\n";
    const std::string sum = "redux.sync.add.s32 %d, %a, 0xffffffff;\n";
    const std::string elect = "elect.sync %d|%s, 0xffffffff; selp.u32 %x, 100, 0, %s; add.u32 %d, %d, %x;\n";
    const std::string meet = "bar.warp.sync 0xffffffff;\n";
    const std::string other = "xor.b32 %x, %t, 31; shl.b32 %x, %x, 2; add.u32 %x, %x, %tile; ld.volatile.shared.u32 %d, [%x];\n";
    const std::string put = "st.volatile.shared.u32 [%mine], %a;\n";
    return {
        {"shfl in both arms", halves(values + bfly, differently + bfly)},
        {"shfl.idx in both arms", halves(values + "shfl.sync.idx.b32 %d, %a, 20, 31, 0xffffffff;", differently + "shfl.sync.idx.b32 %d, %a, 3, 31, 0xffffffff;")},
        {"ballot in both arms", halves(values + ballot, differently + ballot)},
        {"any in both arms", halves("setp.ne.u32 %q, %l, %l;" + any, "setp.eq.u32 %q, %l, 20;" + any)},
        {"match.any in both arms", halves(values + match, differently + match)},
        {"match.all in both arms", halves("mov.u32 %x, 3;" + all, "mov.u32 %x, 4;" + all)},
        {"redux in both arms", halves(values + sum, differently + sum)},
        {"elect in both arms", halves(elect, "add.u32 %a, %t, 1;" + elect)},
        {"bar.warp.sync in both arms", halves(values + put + meet + other, differently + put + meet + other)},
        {"bar.warp.sync twice in one arm", halves(values + put + meet + other + meet, differently + put + meet) + meet + other},
        {"shfl in one arm and behind the join, lanes leave", halves(values + bfly + "add.u32 %e, %d, 1; st.global.u32 [%out], %e; bra OUT;", differently + "mov.u32 %d, 0;") + bfly + "OUT:\n"},
        {"masks of the arms", halves(values + "shfl.sync.bfly.b32 %d, %a, 15, 31, 0x0000ffff;", differently + "shfl.sync.bfly.b32 %d, %a, 15, 31, 0xffff0000;")},
        {"masks across the arms", "setp.lt.u32 %p, %l, 16; and.b32 %x, %l, 1; setp.eq.u32 %s, %x, 0; selp.b32 %m, 0x55555555, 0xaaaaaaaa, %s; @%p bra LOW;\n" + differently +
             "vote.sync.ballot.b32 %d, %q, %m; bra JOIN;\nLOW:\n" + values + "vote.sync.ballot.b32 %d, %q, %m;\nJOIN:\n"},
        {"shuffles across the arms by masks", "setp.lt.u32 %p, %l, 16; and.b32 %x, %l, 1; setp.eq.u32 %s, %x, 0; selp.b32 %m, 0x55555555, 0xaaaaaaaa, %s; @%p bra LOW;\n" + differently +
             "shfl.sync.bfly.b32 %d, %a, 16, 31, %m; bra JOIN;\nLOW:\n" + values + "shfl.sync.bfly.b32 %d, %a, 16, 31, %m;\nJOIN:\n"},
        {"lanes that have exited", "setp.lt.u32 %p, %l, 5; @%p bra GONE;\n" + values + ballot + "bra STAY; GONE: exit; STAY:\n"},
        {"sum without the lanes that have exited", "setp.lt.u32 %p, %l, 5; @%p bra GONE;\n" + values + sum + "bra STAY; GONE: exit; STAY:\n"},
        {"lanes leave a loop one by one", values + "mov.u32 %d, 0; mov.u32 %e, 0;\nLOOP: vote.sync.ballot.b32 %x, %q, 0xffffffff; add.u32 %d, %d, %x; add.u32 %e, %e, 1; setp.le.u32 %p, %e, %l; @%p bra LOOP;\nst.global.u32 [%out], %d; exit;\n"},
        {"shuffle with the wrong operation in one arm", halves(values + bfly, differently + "shfl.sync.up.b32 %d, %a, 1, 0, 0xffffffff;")},
        {"a shuffle meets a vote", halves(values + bfly, differently + ballot)},
        {"full mask, others wait at the join", halves(values + ballot, differently + "mov.u32 %d, 9;")},
        {"activemask in both arms", halves("activemask.b32 %d;", "add.u32 %a, %t, 1; activemask.b32 %d;")},
        {"activemask behind the join", halves(values, differently) + "activemask.b32 %d;\n"},
        {"activemask behind bar.warp.sync", halves(values, differently) + meet + "activemask.b32 %d;\n"},
        {"members by match", values + "and.b32 %x, %l, 3; match.any.sync.b32 %m, %x, 0xffffffff; setp.lt.u32 %p, %x, 2; @%p bra LOW;\n" + differently +
             "redux.sync.add.u32 %d, %a, %m; bra JOIN;\nLOW:\n redux.sync.max.u32 %d, %a, %m;\nJOIN:\n"},
        {"a function called from both arms", halves(values + "call (%d), f, (%a);", differently + "call (%d), f, (%a);")},
    };
}

/// Lanes that a mask names and that do not come, and lanes that come and are not named.
std::vector<Case> members() {
    const std::string with_predicate = "selp.u32 %x, 1000, 0, %s; add.u32 %d, %d, %x;\n", fourths = "and.b32 %x, %l, 3; setp.ne.u32 %p, %x, 0; @%p bra JOIN;\n";
    const std::string own = "mov.u32 %m, 1; shl.b32 %m, %m, %l; not.b32 %m, %m;\n", high = "setp.ge.u32 %p, %l, 16; @%p bra JOIN;\n", tiles = "setp.lt.u32 %p, %l, 16; selp.b32 %m, 0x0000ffff, 0xffff0000, %p;\n";
    const std::string exits = "setp.ge.u32 %p, %l, 16; @%p bra GONE;\nbra.uni STAY; GONE: exit; STAY:\n";
    return {
        {"shfl.down from lanes in no arm", values + fourths + "shfl.sync.down.b32 %d|%s, %a, 3, 31, 0xffffffff;" + with_predicate + "JOIN:\n"},
        {"shfl.up from lanes in no arm", values + fourths + "shfl.sync.up.b32 %d|%s, %a, 3, 0, 0xffffffff;" + with_predicate + "JOIN:\n"},
        {"shfl.bfly from lanes outside of the mask", values + fourths + "shfl.sync.bfly.b32 %d|%s, %a, 1, 31, 0x11111111;" + with_predicate + "JOIN:\n"},
        {"shfl.idx from lanes outside of the mask, segments", values + fourths + "add.u32 %x, %l, 1; shfl.sync.idx.b32 %d|%s, %a, %x, 0x181f, 0x11111111;" + with_predicate + "JOIN:\n"},
        {"shfl.down of one value from lanes in no arm", fourths + "mov.u32 %a, 70; shfl.sync.down.b32 %d|%s, %a, 1, 31, 0xffffffff;" + with_predicate + "JOIN:\n"},
        {"shfl.down from lanes that have exited", values + exits + "shfl.sync.down.b32 %d|%s, %a, 3, 31, 0xffffffff;" + with_predicate},
        {"shfl.down under a guard", values + "and.b32 %x, %l, 3; setp.eq.u32 %p, %x, 0; mov.u32 %d, 5; @%p shfl.sync.down.b32 %d, %a, 1, 31, 0xffffffff;\n"},
        {"ballot of all with a mask of some", values + "vote.sync.ballot.b32 %d, %q, 0x000000ff;\n"},
        {"match.any of all with a mask of some", values + "and.b32 %x, %a, 7; match.any.sync.b32 %d, %x, 0x000000ff;\n"},
        {"match.all of all with a mask of some", values + "mov.u32 %x, 3; match.all.sync.b32 %d|%s, %x, 0x000000ff;" + with_predicate},
        {"redux of all with a mask of some", values + "redux.sync.add.u32 %d, %a, 0x000000ff;\n"},
        {"elect of all with a mask of some", "elect.sync %d|%s, 0xffffff00;" + with_predicate},
        {"shfl of all with a mask of some", values + "shfl.sync.bfly.b32 %d|%s, %a, 16, 31, 0x000000ff;" + with_predicate},
        {"ballot, each with all others", values + own + "vote.sync.ballot.b32 %d, %q, %m;\n"},
        {"shfl, each with all others", values + own + "shfl.sync.bfly.b32 %d, %a, 1, 31, %m;\n"},
        {"redux of the low half with the mask of the high one", values + high + "redux.sync.add.u32 %d, %a, 0xffff0000;\nJOIN:\n"},
        {"match of the low half with the mask of some", values + high + "match.any.sync.b32 %d, %a, 0x000000ff;\nJOIN:\n"},
        {"bar.warp.sync of the low half with the mask of the high one", high + "bar.warp.sync 0xffff0000;\nJOIN:\n"},
        {"elect of the low half with the mask of the high one", high + "elect.sync %d|%s, 0xffff0000;\nJOIN:\n"},
        {"ballot of halves in step", values + tiles + "vote.sync.ballot.b32 %d, %q, %m;\n"},
    };
}

/// Lanes hand each other words through volatile shared memory with nothing but the places between where a GPU has them
/// in step. Each comes once as it is, and once behind a collective in both arms, which lanes come to from two places.
std::vector<Case> hand_over() {
    const std::string start = "shl.b32 %x, %l, 2; add.u32 %mine, %x, %tile; mov.u32 %a, %l;\n";
    const std::string arms = halves("mad.lo.u32 %a, %t, 3, 1; shfl.sync.bfly.b32 %a, %a, 31, 31, 0xffffffff; add.u32 %a, %a, 5;", "mul.lo.u32 %a, %t, 7; shfl.sync.bfly.b32 %a, %a, 31, 31, 0xffffffff; xor.b32 %a, %a, 9;");
    const auto other = [](const std::string& lane) { return lane + "shl.b32 %x, %x, 2; add.u32 %x, %x, %tile; ld.volatile.shared.u32 %e, [%x]; add.u32 %a, %a, %e;\n"; };
    const std::string mirror = other("xor.b32 %x, %l, 31;"), next = other("add.u32 %x, %l, 1; and.b32 %x, %x, 31;"), put = "st.volatile.shared.u32 [%mine], %a;\n";
    const std::string rounds = "mul.lo.u32 %m, %l, 7; and.b32 %m, %m, 15;\n";
    const std::string loop = rounds + "ROUND: setp.eq.u32 %p, %m, 0; @%p bra DONE;\nmad.lo.u32 %a, %a, 3, 1; sub.u32 %m, %m, 1; bra ROUND;\nDONE:\n";
    std::vector<Case> bodies = {
        {"in a straight line", put + mirror + put + next},
        {"behind an if", "and.b32 %x, %l, 5; setp.eq.u32 %p, %x, 1; @%p bra YES;\nadd.u32 %a, %a, 7; bra.uni MET;\nYES: st.global.u32 [%out], %a; mul.lo.u32 %a, %a, 5;\nMET:\n" + put + mirror + put + next},
        {"behind a loop", loop + put + mirror + put + next},
        {"in each of two arms", "setp.lt.u32 %p, %l, 16; @%p bra FIRST;\nmul.lo.u32 %a, %a, 2;" + put + other("xor.b32 %x, %l, 5;") + put + other("xor.b32 %x, %l, 15;") + "bra.uni MET;\nFIRST: add.u32 %a, %a, 1;" + put + other("xor.b32 %x, %l, 3;") + put + other("xor.b32 %x, %l, 14;") + "MET:\n" + put + mirror},
        {"in a loop that lanes leave", put + "and.b32 %m, %l, 3;\nROUND:\n" + put + next + "mul.lo.u32 %a, %a, 3; sub.u32 %m, %m, 1; setp.ge.s32 %p, %m, 0; @%p bra ROUND;\n" + put + mirror},
        {"where some have exited", put + "and.b32 %x, %l, 3; setp.eq.u32 %p, %x, 2; @%p bra GONE;\nbra.uni STAY; GONE: exit; STAY:\nadd.u32 %a, %a, 50;" + put + mirror + put + next},
        {"from the first lane", "setp.ne.u32 %p, %l, 0; @%p bra SKIP;\nst.volatile.shared.u32 [tile], 33;\nSKIP: bar.warp.sync 0xffffffff; ld.volatile.shared.u32 %d, [tile]; @%p bra JUMP;\nadd.u32 %x, %d, 17; st.volatile.shared.u32 [tile], %x;\nJUMP: ld.volatile.shared.u32 %e, [tile]; mad.lo.u32 %a, %d, 1000, %e;\n"},
        {"behind calls that return in two ways", "call (%e), h, (%a); add.u32 %a, %a, %e;" + put + mirror + put + next},
        {"to the next round", "mov.u32 %m, 0;\nROUND:\n" + put + mirror + "vote.sync.ballot.b32 %d, %q, 0xffffffff; and.b32 %d, %d, 255; add.u32 %a, %a, %d; add.u32 %m, %m, 1; setp.lt.u32 %p, %m, 3; @%p bra ROUND;\n"},
    };
    const std::string plain_put = "st.shared.u32 [%mine], %a;\n";
    const auto plain_other = [](const std::string& lane) { return lane + "shl.b32 %x, %x, 2; add.u32 %x, %x, %tile; ld.shared.u32 %e, [%x]; add.u32 %a, %a, %e;\n"; };
    const auto global_other = [](const std::string& lane) { return lane + "mad.wide.u32 %there, %x, 4, %all; ld.volatile.global.u32 %e, [%there]; add.u32 %a, %a, %e;\n"; };
    const std::string global_put = "st.volatile.global.u32 [%out], %a;\n";
    const std::string inner = "mad.lo.u32 %m, %l, 3, %r; and.b32 %m, %m, 3;\nINNER: .pragma \"nounroll\";\n" + put + next + "sub.u32 %m, %m, 1; setp.ge.s32 %p, %m, 0; @%p bra INNER;\n";
    const std::vector<Case> more = {
        {"in a loop that lanes leave, not unrolled", put + "and.b32 %m, %l, 3;\nROUND: .pragma \"nounroll\";\n" + put + next + "mul.lo.u32 %a, %a, 3; sub.u32 %m, %m, 1; setp.ge.s32 %p, %m, 0; @%p bra ROUND;\n" + put + mirror},
        {"in a loop that lanes leave, in another one", "{ .reg .b32 %r; mov.u32 %r, 0;\nOUTER: .pragma \"nounroll\";\n" + inner + "add.u32 %r, %r, 1; setp.lt.u32 %p, %r, 4; @%p bra OUTER;\n}\n" + put + mirror},
        {"in a loop that lanes leave, in another one that they leave", "{ .reg .b32 %r, %n; mov.u32 %r, 0; mul.lo.u32 %n, %l, 5; and.b32 %n, %n, 3;\nOUTER: .pragma \"nounroll\";\n" + inner + "add.u32 %a, %a, 1; add.u32 %r, %r, 1; setp.le.u32 %p, %r, %n; @%p bra OUTER;\n}\n" + put + mirror},
        {"in a loop with two exits", "mov.u32 %m, 0;\nROUND: .pragma \"nounroll\";\n" + put + next + "and.b32 %x, %a, 7; setp.eq.u32 %p, %x, 1; @%p bra ODD;\nadd.u32 %m, %m, 1; setp.lt.u32 %p, %m, 5; @%p bra ROUND;\nadd.u32 %a, %a, 100; bra.uni MET;\nODD: add.u32 %a, %a, 1000;\nMET:\n" + put + mirror},
        {"in arms within arms", "and.b32 %x, %l, 1; setp.eq.u32 %p, %x, 0; @%p bra EVEN;\n and.b32 %x, %l, 2; setp.eq.u32 %p, %x, 0; @%p bra FIRST;\n" + put + other("xor.b32 %x, %l, 4;") + put + other("xor.b32 %x, %l, 8;") + "bra.uni ODD;\nFIRST: add.u32 %a, %a, 3;" + put + other("xor.b32 %x, %l, 12;") + "ODD:\n" +
             put + other("xor.b32 %x, %l, 2;") + "bra.uni MET;\nEVEN:\n" + put + other("xor.b32 %x, %l, 6;") + "MET:\n" + put + mirror},
        {"in an arm that two branches lead to", "and.b32 %x, %l, 1; setp.eq.u32 %p, %x, 0; @%p bra BOTH;\nadd.u32 %a, %a, 70; st.global.u32 [%out], %a; and.b32 %x, %l, 2; setp.eq.u32 %p, %x, 0; @%p bra BOTH;\n" + put + other("xor.b32 %x, %l, 4;") + "bra.uni MET;\nBOTH:\n" + put + other("add.u32 %x, %l, 28; and.b32 %x, %x, 31;") + "MET:\n" + put + mirror},
        {"in an arm, in each round", "mov.u32 %m, 0;\nROUND: .pragma \"nounroll\";\nadd.u32 %x, %l, %m; and.b32 %x, %x, 3; setp.eq.u32 %p, %x, 0; @%p bra SKIP;\n" + put + mirror + "SKIP: add.u32 %m, %m, 1; setp.lt.u32 %p, %m, 6; @%p bra ROUND;\n" + put + mirror},
        {"through plain shared memory", plain_put + plain_other("xor.b32 %x, %l, 31;") + plain_put + plain_other("add.u32 %x, %l, 1; and.b32 %x, %x, 31;")},
        {"through plain shared memory, behind a loop", loop + plain_put + plain_other("xor.b32 %x, %l, 31;") + plain_put + plain_other("add.u32 %x, %l, 1; and.b32 %x, %x, 31;")},
        {"through global memory", "{ .reg .b64 %all, %there; ld.param.u64 %all, [out];\n" + global_put + global_other("xor.b32 %x, %l, 31;") + global_put + global_other("add.u32 %x, %l, 1; and.b32 %x, %x, 31;") + "}\n"},
        {"through plain global memory", "{ .reg .b64 %all, %there; ld.param.u64 %all, [out];\n st.global.u32 [%out], %a; xor.b32 %x, %l, 31; mad.wide.u32 %there, %x, 4, %all; ld.global.u32 %e, [%there]; add.u32 %a, %a, %e; st.global.u32 [%out], %a; add.u32 %x, %l, 1; and.b32 %x, %x, 31; mad.wide.u32 %there, %x, 4, %all; ld.global.u32 %e, [%there]; add.u32 %a, %a, %e; }\n"},
        {"through global memory, behind a loop", "{ .reg .b64 %all, %there; ld.param.u64 %all, [out];\n" + loop + global_put + global_other("xor.b32 %x, %l, 31;") + global_put + global_other("add.u32 %x, %l, 1; and.b32 %x, %x, 31;") + "}\n"},
        {"through a sum", "setp.eq.u32 %p, %l, 0; @%p st.volatile.shared.u32 [tile+128], 7;\nred.shared.add.u32 [tile+128], %a; ld.volatile.shared.u32 %e, [tile+128]; add.u32 %a, %a, %e;\nand.b32 %x, %l, 3; setp.eq.u32 %p, %x, 1; @%p bra SKIP;\nred.shared.add.u32 [tile+128], %a;\nSKIP: ld.volatile.shared.u32 %e, [tile+128]; add.u32 %a, %a, %e;\n"},
        {"behind a flag that lanes wait for", put + "setp.eq.u32 %p, %l, 0; @%p st.volatile.shared.u32 [tile+128], 0; bar.warp.sync 0xffffffff; @%p bra SET;\nWAIT: ld.volatile.shared.u32 %e, [tile+128]; setp.eq.u32 %s, %e, 0; @%s bra WAIT;\nadd.u32 %a, %a, %e; bra.uni MET;\nSET: st.volatile.shared.u32 [tile+128], 5;\nMET:\n" + put + mirror + put + next},
        {"behind a lock", "setp.eq.u32 %p, %l, 0; @%p st.volatile.shared.u32 [tile+128], 0; @%p st.volatile.shared.u32 [tile+132], 0; bar.warp.sync 0xffffffff; mov.u32 %m, 0;\nTRY: atom.shared.cas.b32 %x, [tile+128], 0, 1; setp.ne.u32 %s, %x, 0; @%s bra BUSY;\nld.volatile.shared.u32 %x, [tile+132]; add.u32 %x, %x, 1; st.volatile.shared.u32 [tile+132], %x; membar.cta; atom.shared.exch.b32 %x, [tile+128], 0; mov.u32 %m, 1;\nBUSY: setp.eq.u32 %s, %m, 0; @%s bra TRY;\nld.volatile.shared.u32 %e, [tile+132]; add.u32 %a, %a, %e;\n" + put + mirror},
        {"in a recursive function", "call (%a), r, (%a, 3, %l, %tile);\n" + put + mirror},
        {"in a recursive function, to different depths", "and.b32 %m, %l, 3; call (%a), r, (%a, %m, %l, %tile);\n" + put + mirror},
        {"in a recursive function that two arms call", "and.b32 %x, %l, 1; setp.eq.u32 %p, %x, 0; @%p bra EVEN;\ncall (%a), r, (%a, 2, %l, %tile);\nbra.uni MET;\nEVEN: add.u32 %a, %a, 17; call (%a), r, (%a, 1, %l, %tile);\nMET:\n" + put + mirror},
        {"behind shuffles of halves", "setp.lt.u32 %p, %l, 16; selp.b32 %m, 0x0000ffff, 0xffff0000, %p;\n" + put + "shfl.sync.bfly.b32 %e, %a, 8, 31, %m; add.u32 %a, %a, %e;\n" + put + other("xor.b32 %x, %l, 7;") + "bar.warp.sync %m;\n" + put + mirror},
    };
    bodies.insert(bodies.end(), more.begin(), more.end());
    std::vector<Case> list;
    for (const Case& one : bodies) {
        const std::string end = "mov.u32 %d, %a;\n", before = start + "and.b32 %x, %l, 5; setp.ne.u32 %q, %x, 0;\n";
        list.push_back({"hand-over " + one.name, before + one.body + end});
        list.push_back({"hand-over " + one.name + ", lanes meet from two places", before + arms + one.body + end});
    }
    return list;
}

std::vector<Case> barriers() {
    const std::string put = "st.shared.u32 [%mine], %a;\n", get = "xor.b32 %x, %t, 63; shl.b32 %x, %x, 2; add.u32 %x, %x, %tile; ld.shared.u32 %d, [%x];\n";
    const std::string all_hold = "barrier.cta.red.and.pred %s, 3, %q; selp.u32 %d, 1, 0, %s;\n", some_holds = "barrier.cta.red.or.pred %s, 3, %q; selp.u32 %d, 1, 0, %s;\n";
    const std::string popc = "barrier.cta.red.popc.u32 %d, 0, %q;\n";
    return {
        {"barrier in both arms", halves(values + put + "barrier.cta.sync 0;\n" + get, differently + put + "barrier.cta.sync 0;\n" + get), 64},
        {"barriers of their own for the halves of two warps", halves(values + put + "barrier.cta.sync 1, 32;\n" + "ld.shared.u32 %d, [%mine];", differently + put + "barrier.cta.sync 2, 32;\n" + "ld.shared.u32 %d, [%mine];"), 64},
        {"barrier for the low halves only", halves(values + put + "barrier.cta.sync 1, 32;\n xor.b32 %x, %t, 32; shl.b32 %x, %x, 2; add.u32 %x, %x, %tile; ld.shared.u32 %d, [%x];", "mov.u32 %d, 3;"), 64},
        {"barrier for the low halves only, count of both warps", halves(values + put + "barrier.cta.sync 1, 64;\n xor.b32 %x, %t, 32; shl.b32 %x, %x, 2; add.u32 %x, %x, %tile; ld.shared.u32 %d, [%x];", "mov.u32 %d, 3;"), 64},
        {"popc in both arms", halves(values + popc, differently + popc), 64},
        {"popc in arms that differ from warp to warp", "mul.lo.u32 %a, %t, 0x9e3779b1; shr.u32 %x, %a, 20; and.b32 %x, %x, 1; setp.eq.u32 %p, %x, 0; shr.u32 %x, %a, 23; and.b32 %x, %x, 3; setp.eq.u32 %q, %x, 1; @%p bra LOW;\n"
             "add.u32 %a, %a, 3;" + popc + "bra JOIN;\nLOW:\n mul.lo.u32 %a, %a, 5;" + popc + "JOIN:\n", 96},
        {"and in both arms, no lane of the low ones", halves("setp.ne.u32 %q, %t, %t;" + all_hold, "setp.eq.u32 %q, %t, %t;" + all_hold), 64},
        {"and in both arms, no lane of the high ones", halves("setp.eq.u32 %q, %t, %t;" + all_hold, "setp.ne.u32 %q, %t, %t;" + all_hold), 64},
        {"or in both arms, a lane of the low ones", halves("setp.eq.u32 %q, %t, 3;" + some_holds, "setp.eq.u32 %q, %t, 3;" + some_holds), 64},
        {"or in both arms, a lane of the high ones", halves("setp.eq.u32 %q, %t, 50;" + some_holds, "setp.eq.u32 %q, %t, 50;" + some_holds), 64},
        {"popc of the low ones in both arms", halves("setp.eq.u32 %q, %t, %t;" + popc, "setp.ne.u32 %q, %t, %t;" + popc), 64},
        {"popc of the high ones in both arms", halves("setp.ne.u32 %q, %t, %t;" + popc, "setp.eq.u32 %q, %t, %t;" + popc), 64},
        {"popc twice in both arms", halves(values + popc + "mov.u32 %e, %d;" + differently + popc + "mad.lo.u32 %d, %e, 1000, %d;", differently + popc + "mov.u32 %e, %d;" + values + popc + "mad.lo.u32 %d, %e, 1000, %d;"), 64},
        {"popc with lanes gone", halves("exit;\n", differently + popc), 64},
        {"popc of 40 threads", values + popc, 40},
        {"and of 40 threads", "setp.eq.u32 %q, %t, %t; barrier.cta.red.and.pred %s, 0, %q; selp.u32 %d, 1, 0, %s;\n", 40},
        {"popc aligned with lanes gone", halves("exit;\n", differently + "barrier.cta.red.popc.aligned.u32 %d, 0, %q;\n"), 64},
        {"lanes have exited", halves("exit;\n", differently + put + "barrier.cta.sync 0;\nxor.b32 %x, %t, 47; shl.b32 %x, %x, 2; add.u32 %x, %x, %tile; ld.shared.u32 %d, [%x];"), 64},
        {"lanes have exited, count", halves("exit;\n", differently + put + "barrier.cta.sync 0, 64;\nxor.b32 %x, %t, 47; shl.b32 %x, %x, 2; add.u32 %x, %x, %tile; ld.shared.u32 %d, [%x];"), 64},
        {"a warp has exited, count of the rest", "setp.eq.u32 %p, %w, 0; @%p exit;\n" + values + "barrier.cta.sync 3, 64; mov.u32 %d, %a;\n", 96},
        {"arrive in one arm, sync in the other", halves(values + put + "barrier.cta.arrive 1, 64; mov.u32 %d, 8;", differently + put + "barrier.cta.sync 1, 64; mov.u32 %d, 9;"), 64},
        {"warps in two roles", "setp.eq.u32 %p, %w, 0; @%p bra LOW;\n" + values + put + "barrier.cta.arrive 2, 64; mov.u32 %d, 1; bra JOIN;\nLOW: barrier.cta.sync 2, 64;\n" + get + "JOIN:\n", 64},
        {"register operands", values + put + "mov.u32 %x, 5; add.u32 %x, %x, %w; mov.u32 %e, 32; barrier.cta.sync %x, %e;\nxor.b32 %x, %t, 31; shl.b32 %x, %x, 2; add.u32 %x, %x, %tile; ld.shared.u32 %d, [%x];\n", 64},
        {"lanes take different numbers of rounds", values + "mov.u32 %d, 0; and.b32 %e, %l, 3;\nLOOP: barrier.cta.red.popc.u32 %x, 0, %q; add.u32 %d, %d, %x; sub.u32 %e, %e, 1; setp.ge.s32 %p, %e, 0; @%p bra LOOP;\nst.global.u32 [%out], %d; exit;\n", 64},
        {"barriers in a function from both arms", halves(values + put + "call (%d), g, (%a);" + get, differently + put + "call (%d), g, (%a);" + get), 64},
        {"halves pass in turns", halves(values + put + "barrier.cta.sync 0; barrier.cta.sync 0;" + get, differently + "barrier.cta.sync 0;" + put + "barrier.cta.sync 0;" + get), 64},
        {"sync meets aligned sync of another warp", "setp.eq.u32 %p, %w, 0; @%p bra LOW;\n" + values + put + "barrier.cta.sync.aligned 0;" + get + "bra JOIN;\nLOW:\n" + differently + put + "barrier.cta.sync 0;" + get + "JOIN:\n", 64},
    };
}

} // namespace

const std::vector<Case>& cases() {
    static const std::vector<Case> all = [] {
        std::vector<Case> list = collectives();
        for (const std::vector<Case>& more : {barriers(), members(), hand_over()}) list.insert(list.end(), more.begin(), more.end());
        return list;
    }();
    return all;
}

std::string text_of(const Case& which) {
    return ".version 8.0\n.target sm_90\n.address_size 64\n"
           ".func (.reg .b32 %result) f(.reg .b32 %value)\n{\n.reg .pred %q; .reg .b32 %x;\nand.b32 %x, %value, 12; setp.ne.u32 %q, %x, 0; vote.sync.ballot.b32 %result, %q, 0xffffffff; add.u32 %result, %result, %value; ret;\n}\n"
           ".func (.reg .b32 %result) g(.reg .b32 %value)\n{\nbarrier.cta.sync 0; mov.u32 %result, %value; ret;\n}\n"
           ".func (.reg .b32 %result) h(.reg .b32 %value)\n{\n.reg .pred %p; .reg .b32 %x;\nand.b32 %x, %value, 1; setp.eq.u32 %p, %x, 0; @%p bra EVEN;\nmul.lo.u32 %result, %value, 3; ret;\nEVEN: add.u32 %result, %value, 9; ret;\n}\n"
           ".func (.reg .b32 %result) r(.reg .b32 %value, .reg .b32 %n, .reg .b32 %lane, .reg .b32 %tile)\n{\n.reg .pred %p; .reg .b32 %x, %y, %e, %v, %m;\nshl.b32 %x, %lane, 2; add.u32 %x, %x, %tile; xor.b32 %y, %lane, 3; shl.b32 %y, %y, 2; add.u32 %y, %y, %tile;\n"
           "st.volatile.shared.u32 [%x], %value; ld.volatile.shared.u32 %e, [%y]; add.u32 %v, %value, %e; setp.eq.u32 %p, %n, 0; @%p bra END; sub.u32 %m, %n, 1; call (%v), r, (%v, %m, %lane, %tile);\n"
           "END: st.volatile.shared.u32 [%x], %v; ld.volatile.shared.u32 %e, [%y]; mad.lo.u32 %result, %e, 3, %n; ret;\n}\n"
           ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p, %q, %s; .reg .b32 %a, %d, %e, %l, %m, %t, %w, %x, %mine, %tile; .reg .b64 %out;\n.shared .align 8 .b8 tile[512];\n"
           "mov.u32 %t, %tid.x; and.b32 %l, %t, 31; shr.u32 %w, %t, 5; mov.u32 %tile, tile; shl.b32 %mine, %t, 2; add.u32 %mine, %mine, %tile; mov.u32 %d, 0;\n"
           "ld.param.u64 %out, [out]; mad.wide.u32 %out, %t, 4, %out;\n" + which.body + "st.global.u32 [%out], %d;\nret;\n}\n";
}

} // namespace divergence
