// The machines of a group's ranks.

#ifndef HAWSER_COLLECTIVES_GLOO_MACHINES_H_
#define HAWSER_COLLECTIVES_GLOO_MACHINES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace hawser::collectives {

// Machines have numbers in the order of their first ranks, and the ranks of one
// have indices in their order. Immutable.
class Machines {
 public:
  // `names[rank]` is the name of the rank's machine.
  explicit Machines(const std::vector<std::string>& names);

  // With a machine for each rank, in place of those machines one of whose ranks
  // cannot share memory.
  Machines Split(const std::vector<bool>& can_share) const;

  int count() const { return static_cast<int>(ranks_.size()); }
  // In their order.
  const std::vector<int>& ranks_on(int machine) const {
    return ranks_[static_cast<size_t>(machine)];
  }
  int size_of(int machine) const {
    return static_cast<int>(ranks_on(machine).size());
  }
  int machine_of(int rank) const {
    return places_[static_cast<size_t>(rank)].machine;
  }
  int index_of(int rank) const {
    return places_[static_cast<size_t>(rank)].index;
  }
  // The rank of the machine that exchanges data with the ranks of this index on
  // other machines, which may have more ranks.
  int Counterpart(int machine, int index) const {
    return ranks_on(machine)[static_cast<size_t>(index % size_of(machine))];
  }
  // All machines have the same number of ranks.
  bool are_equal() const { return are_equal_; }

 private:
  struct Place {
    int machine = 0;
    int index = 0;
  };
  std::vector<std::vector<int>> ranks_;
  std::vector<Place> places_;
  bool are_equal_ = true;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_MACHINES_H_
