// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/known_in_steps.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>

namespace ptarmigan::translator {

const std::optional<StepNumber>& KnownInSteps::number(ValueId id) {
    const auto [place, is_new] = known_numbers_.try_emplace(id);
    if (is_new && unit_.width > 1) place->second = numbers_.of(id);
    return place->second;
}

llvm::GlobalVariable* KnownInSteps::masks(ValueId id) {
    const auto [place, is_new] = known_masks_.try_emplace(id, nullptr);
    if (!is_new || unit_.width == 1) return place->second;
    const std::optional<std::vector<std::uint64_t>> masks = numbers_.masks_of(id);
    if (!masks) return nullptr;
    llvm::SmallVector<std::uint32_t, 32> words(masks->begin(), masks->end());
    llvm::Constant* table = llvm::ConstantDataArray::get(unit_.context, words);
    place->second = new llvm::GlobalVariable(*unit_.module, table->getType(), /*isConstant=*/true,
                                             llvm::GlobalValue::PrivateLinkage, table, "masks");
    place->second->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return place->second;
}

} // namespace ptarmigan::translator
