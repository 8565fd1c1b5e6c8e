// SPDX-License-Identifier: Apache-2.0
// Draws for CTAs that are running already.
#include "runtime/launch/launch_control.h"

#include "runtime/launch/worker.h"

#include <array>

namespace ptarmigan::runtime {
namespace {

/// First ctaid and whether there is one, as the translator's query_cancel reads it.
using Response = std::array<std::uint32_t, 4>;

Response draw_cluster(Grid& grid) {
    const std::uint64_t count = grid.cta_count;
    Response response{};
    if (grid.stopped() || grid.next_cta.load(std::memory_order_relaxed) >= count) return response;
    std::uint64_t number = grid.next_cta.fetch_add(1, std::memory_order_relaxed);
    if (number >= count) return response;
    for (unsigned i = 0; i < 3; ++i) {
        const std::uint32_t extent = grid.launch.ncluster[i], clusters = grid.launch.nctaid[i] / extent;
        response[i] = static_cast<std::uint32_t>(number % clusters) * extent;
        number /= clusters;
    }
    response[3] = 1;
    return response;
}

} // namespace

void cancel_launch(abi::CtaContext* cta, std::uint32_t step, std::uint64_t response, std::uint64_t object,
                   std::uint32_t all, std::uint32_t line) {
    Worker& worker = *static_cast<Worker*>(cta->worker);
    const Response drawn = draw_cluster(worker.grid());
    if (!all) return worker.copies().store_words(*cta, step, line, response, object, drawn);
    const auto window = reinterpret_cast<std::uint64_t>(cta->shared);
    constexpr std::uint64_t inside = (std::uint64_t{1} << abi::cluster_rank_bit) - 1;
    for (std::uint64_t rank = 0; rank < worker.grid().cluster_size; ++rank) {
        const auto at = [&](std::uint64_t address) {
            return window + (rank << abi::cluster_rank_bit) + ((address - window) & inside);
        };
        worker.copies().store_words(*cta, step, line, at(response), at(object), drawn);
    }
}

} // namespace ptarmigan::runtime
