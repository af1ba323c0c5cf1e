// A problem as a graph of the backend API, for the stand-in's tests.
#pragma once

#include "tests/standin/test_problem.hpp"

namespace standin {

// Descriptors that are destroyed with their owner; a failing call fails the test.
class GraphBuilder {
 public:
  explicit GraphBuilder(cudnnHandle_t handle) : handle_(handle) {}
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;
  ~GraphBuilder() {
    for (auto* descriptor : all_) cudnnBackendDestroyDescriptor(descriptor);
  }

  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t d = nullptr;
    EXPECT_EQ(cudnnBackendCreateDescriptor(type, &d), CUDNN_STATUS_SUCCESS);
    all_.push_back(d);
    return d;
  }
  template <typename T>
  static void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, const T* values, std::int64_t count = 1) {
    EXPECT_EQ(cudnnBackendSetAttribute(d, name, type, count, values), CUDNN_STATUS_SUCCESS) << name;
  }
  static void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendDescriptor_t value) {
    set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value);
  }
  static void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, std::int64_t value) {
    set(d, name, CUDNN_TYPE_INT64, &value);
  }
  static void finalize(cudnnBackendDescriptor_t d) {
    EXPECT_EQ(cudnnBackendFinalize(d), CUDNN_STATUS_SUCCESS);
  }

  cudnnBackendDescriptor_t tensor(const Tensor& t) {
    auto* d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, t.uid);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &t.type);
    const auto rank = static_cast<std::int64_t>(t.rank);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t.dim.data(), rank);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t.stride.data(), rank);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
    set(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, &t.is_virtual);
    finalize(d);
    return d;
  }

  // `result` stands in the place of the problem's own.
  cudnnBackendDescriptor_t convolution(const Problem& p, const Tensor& result, double alpha, double beta) {
    auto* conv = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const auto dims = static_cast<std::int64_t>(p.spatial.pad.size());
    const cudnnConvolutionMode_t mode = p.conv.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    set(conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, dims);
    set(conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &p.compute);
    set(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode);
    set(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, p.spatial.pad.data(), dims);
    set(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, p.spatial.pad.data(), dims);
    set(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, p.spatial.stride.data(), dims);
    set(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, p.spatial.dilation.data(), dims);
    finalize(conv);
    struct Names {
      cudnnBackendDescriptorType_t type;
      cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
    };
    static constexpr Names all_names[operation_count] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
    const Names& names = all_names[static_cast<std::size_t>(p.operation)];
    const Tensor* tensors[] = {&p.x, &p.w, &p.y};
    tensors[result_of(p.operation)] = &result;
    auto* op = make(names.type);
    set(op, names.x, tensor(*tensors[0]));
    set(op, names.w, tensor(*tensors[1]));
    set(op, names.y, tensor(*tensors[2]));
    set(op, names.conv, conv);
    scalar(op, names.alpha, p.compute, alpha);
    scalar(op, names.beta, p.compute, beta);
    finalize(op);
    return op;
  }
  cudnnBackendDescriptor_t convolution(const Problem& p, double alpha = 1, double beta = 0) {
    return convolution(p, p.result(), alpha, beta);
  }

  cudnnBackendDescriptor_t pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* b,
                                     const Tensor& y, float alpha1 = 1, float alpha2 = 1) {
    auto* pointwise = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    set(pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, &mode);
    set(pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, &precision);
    finalize(pointwise);
    auto* op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(x));
    if (b != nullptr) {
      set(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(*b));
      set(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, &alpha1);
      set(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, &alpha2);
    }
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(y));
    finalize(op);
    return op;
  }

  cudnnBackendDescriptor_t graph(const std::vector<cudnnBackendDescriptor_t>& operations) {
    auto* g = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations.data(),
        static_cast<std::int64_t>(operations.size()));
    set(g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &handle_);
    finalize(g);
    return g;
  }

  std::vector<cudnnBackendDescriptor_t> heuristics(cudnnBackendDescriptor_t g) {
    auto* h = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_INSTANT;
    set(h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g);
    set(h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
    finalize(h);
    std::int64_t count = 0;
    cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                             nullptr);
    std::vector<cudnnBackendDescriptor_t> configs;
    for (std::int64_t i = 0; i < count; ++i) configs.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                             configs.data());
    configs.resize(static_cast<std::size_t>(count));
    return configs;
  }

  // The engine's default configuration; null where the engine or the configuration is refused.
  cudnnBackendDescriptor_t config(cudnnBackendDescriptor_t g, std::int64_t engine) {
    auto* e = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    set(e, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, g);
    set(e, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine);
    if (cudnnBackendFinalize(e) != CUDNN_STATUS_SUCCESS) return nullptr;
    auto* c = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    set(c, CUDNN_ATTR_ENGINECFG_ENGINE, e);
    return cudnnBackendFinalize(c) == CUDNN_STATUS_SUCCESS ? c : nullptr;
  }

  // Null where it is refused.
  cudnnBackendDescriptor_t plan(cudnnBackendDescriptor_t engine_config) {
    auto* p = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &handle_);
    set(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine_config);
    return cudnnBackendFinalize(p) == CUDNN_STATUS_SUCCESS ? p : nullptr;
  }

  static std::int64_t workspace_size(cudnnBackendDescriptor_t plan) {
    std::int64_t size = -1, count = 0;
    cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                             &size);
    return size;
  }

  cudnnStatus_t execute(cudnnBackendDescriptor_t plan, const std::vector<std::int64_t>& ids,
                        const std::vector<void*>& pointers) {
    std::vector<std::byte> workspace(static_cast<std::size_t>(workspace_size(plan)));
    return execute(plan, ids, pointers, workspace.empty() ? nullptr : workspace.data());
  }
  cudnnStatus_t execute(cudnnBackendDescriptor_t plan, const std::vector<std::int64_t>& ids,
                        const std::vector<void*>& pointers, void* workspace) {
    return cudnnBackendExecute(handle_, plan, pack(ids, pointers, workspace));
  }
  cudnnStatus_t execute(cudnnBackendDescriptor_t plan, Problem& p) {
    return execute(plan, {'x', 'w', 'y'}, pointers(p));
  }

  cudnnBackendDescriptor_t pack(const std::vector<std::int64_t>& ids, const std::vector<void*>& data,
                                void* workspace) {
    auto* made = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const auto count = static_cast<std::int64_t>(ids.size());
    set(made, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), count);
    set(made, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, data.data(), count);
    set(made, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace);
    finalize(made);
    return made;
  }
  cudnnBackendDescriptor_t pack(Problem& p) { return pack({'x', 'w', 'y'}, pointers(p), nullptr); }

 private:
  static std::vector<void*> pointers(Problem& p) {
    return {p.x_memory.data(), p.w_memory.data(), p.y_memory.data()};
  }

  static void scalar(cudnnBackendDescriptor_t op, cudnnBackendAttributeName_t name, cudnnDataType_t type,
                     double value) {
    const auto narrow = static_cast<float>(value);
    if (type == CUDNN_DATA_DOUBLE)
      set(op, name, CUDNN_TYPE_DOUBLE, &value);
    else
      set(op, name, CUDNN_TYPE_FLOAT, &narrow);
  }

  cudnnHandle_t handle_;
  std::vector<cudnnBackendDescriptor_t> all_;
};

}  // namespace standin
