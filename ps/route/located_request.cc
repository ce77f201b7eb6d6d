#include "ps/route/located_request.h"

#include <vector>

#include "tensor/tensor.h"

namespace hawser::ps {

template class LocatedRequestOf<void>;
template class LocatedRequestOf<tensor::Tensor>;
template class LocatedRequestOf<std::vector<tensor::Tensor>>;

}  // namespace hawser::ps
