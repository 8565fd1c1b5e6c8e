// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/access_mark.h"

#include "translator/kernel_abi.h"

namespace ptarmigan::translator::lower {

namespace {

AccessForm of_lanes(AccessForm::Kind kind, unsigned first, unsigned count, unsigned bytes) {
    AccessForm form{kind, std::uint8_t(bytes), {}};
    for (unsigned lane = first; lane < first + count; ++lane) form.lanes.push_back(std::uint8_t(lane));
    return form;
}

} // namespace

AccessForm of_lane(unsigned lane, unsigned bytes) {
    return of_lanes(AccessForm::Kind::lanes, lane, 1, bytes);
}

AccessForm of_all_lanes(WarpEmitter& e) {
    return of_lanes(AccessForm::Kind::lanes, 0, e.width(), 0);
}

AccessForm of_gather(unsigned first, unsigned count) {
    return of_lanes(AccessForm::Kind::gather, first, count, 0);
}

AccessForm note_lane(WarpEmitter& e, llvm::Value* lane) {
    if (e.width() > 1) {
        llvm::Value* place = e.ir().CreateConstInBoundsGEP1_64(e.ir().getInt8Ty(), e.cta_context(),
                                                               offsetof(abi::CtaContext, noted_lane));
        // Volatile: it must have been written when the access is made.
        e.ir().CreateAlignedStore(e.ir().CreateZExtOrTrunc(lane, e.ir().getInt32Ty()), place, llvm::Align(4),
                                  /*isVolatile=*/true);
    }
    return {AccessForm::Kind::noted, 0, {}};
}

AccessForm behind_noted(AccessForm noted, unsigned more, unsigned bytes) {
    noted.element_bytes = std::uint8_t(bytes);
    noted.lanes.assign(1, std::uint8_t(more));
    return noted;
}

} // namespace ptarmigan::translator::lower
