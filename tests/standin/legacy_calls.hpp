// A program's calls of the legacy API, for the stand-in's tests: the same for each operation.
#pragma once

#include "tests/standin/test_problem.hpp"

namespace standin {

// A row of cudnnConvolutionFwdAlgoPerf_t and its like.
struct Listed {
  int algo;
  cudnnStatus_t status;
  float time;
  cudnnDeterminism_t determinism;
  cudnnMathType_t math_type;
};

template <typename Perf, typename Call>
std::vector<Listed> listed(int requested, Call call) {
  std::vector<Perf> rows(static_cast<std::size_t>(requested));
  int count = -1;
  EXPECT_EQ(call(requested, &count, rows.data()), CUDNN_STATUS_SUCCESS);
  std::vector<Listed> list;
  for (int i = 0; i < count; ++i) {
    const Perf& row = rows[static_cast<std::size_t>(i)];
    list.push_back({row.algo, row.status, row.time, row.determinism, row.mathType});
  }
  return list;
}

class LegacyCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    cudnnCreateTensorDescriptor(&x_);
    cudnnCreateTensorDescriptor(&y_);
    cudnnCreateFilterDescriptor(&w_);
    cudnnCreateConvolutionDescriptor(&conv_);
  }
  void TearDown() override {
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(conv_);
    cudnnDestroy(handle_);
  }

  static std::vector<int> narrow(const std::int64_t* values, std::size_t count) {
    return {values, values + count};
  }

  static void describe(cudnnTensorDescriptor_t descriptor, const Tensor& t) {
    const auto dim = narrow(t.dim.data(), t.rank), stride = narrow(t.stride.data(), t.rank);
    ASSERT_EQ(
        cudnnSetTensorNdDescriptor(descriptor, t.type, static_cast<int>(t.rank), dim.data(), stride.data()),
        CUDNN_STATUS_SUCCESS);
  }

  void describe(const Problem& p, cudnnMathType_t math = CUDNN_DEFAULT_MATH) {
    describe(x_, p.x);
    describe(y_, p.y);
    const auto dim = narrow(p.w.dim.data(), p.w.rank);
    const bool nhwc = p.w.stride[1] == 1 && p.w.dim[2] * p.w.dim[3] > 1;
    ASSERT_EQ(cudnnSetFilterNdDescriptor(w_, p.w.type, nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                         static_cast<int>(p.w.rank), dim.data()),
              CUDNN_STATUS_SUCCESS);
    const std::size_t dims = p.spatial.pad.size();
    const auto pad = narrow(p.spatial.pad.data(), dims), stride = narrow(p.spatial.stride.data(), dims);
    const auto dilation = narrow(p.spatial.dilation.data(), dims);
    ASSERT_EQ(cudnnSetConvolutionNdDescriptor(
                  conv_, static_cast<int>(dims), pad.data(), stride.data(), dilation.data(),
                  p.conv.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION, p.compute),
              CUDNN_STATUS_SUCCESS);
    cudnnSetConvolutionGroupCount(conv_, static_cast<int>(p.conv.groups));
    cudnnSetConvolutionMathType(conv_, math);
  }

  // The three calls of each kind take the same arguments in another order.
  cudnnStatus_t workspace_size(Operation operation, int algorithm, std::size_t& size) {
    switch (operation) {
      case Operation::Forward:
        return cudnnGetConvolutionForwardWorkspaceSize(
            handle_, x_, w_, conv_, y_, static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), &size);
      case Operation::BackwardData:
        return cudnnGetConvolutionBackwardDataWorkspaceSize(
            handle_, w_, y_, conv_, x_, static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), &size);
      default:
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(
            handle_, x_, y_, conv_, w_, static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), &size);
    }
  }

  cudnnStatus_t run(Problem& p, int algorithm, double alpha, double beta, std::vector<std::byte> workspace) {
    const float narrow_scale[] = {static_cast<float>(alpha), static_cast<float>(beta)};
    const double wide_scale[] = {alpha, beta};
    const bool is_double = p.x.type == CUDNN_DATA_DOUBLE;
    const void* a = is_double ? static_cast<const void*>(&wide_scale[0]) : &narrow_scale[0];
    const void* b = is_double ? static_cast<const void*>(&wide_scale[1]) : &narrow_scale[1];
    void* x = p.x_memory.data();
    void* w = p.w_memory.data();
    void* y = p.y_memory.data();
    const std::size_t size = workspace.size();
    void* room = size > 0 ? workspace.data() : nullptr;
    switch (p.operation) {
      case Operation::Forward:
        return cudnnConvolutionForward(handle_, a, x_, x, w_, w, conv_,
                                       static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), room, size, b, y_,
                                       y);
      case Operation::BackwardData:
        return cudnnConvolutionBackwardData(handle_, a, w_, w, y_, y, conv_,
                                            static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), room, size,
                                            b, x_, x);
      default:
        return cudnnConvolutionBackwardFilter(handle_, a, x_, x, y_, y, conv_,
                                              static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), room,
                                              size, b, w_, w);
    }
  }
  cudnnStatus_t run(Problem& p, int algorithm, double alpha = 1, double beta = 0) {
    std::size_t size = 0;
    const cudnnStatus_t status = workspace_size(p.operation, algorithm, size);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return run(p, algorithm, alpha, beta, std::vector<std::byte>(size));
  }

  std::vector<Listed> get(Operation operation, int requested) {
    switch (operation) {
      case Operation::Forward:
        return listed<cudnnConvolutionFwdAlgoPerf_t>(requested, [&](int n, int* count, auto* rows) {
          return cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, conv_, y_, n, count, rows);
        });
      case Operation::BackwardData:
        return listed<cudnnConvolutionBwdDataAlgoPerf_t>(requested, [&](int n, int* count, auto* rows) {
          return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle_, w_, y_, conv_, x_, n, count, rows);
        });
      default:
        return listed<cudnnConvolutionBwdFilterAlgoPerf_t>(requested, [&](int n, int* count, auto* rows) {
          return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, x_, y_, conv_, w_, n, count, rows);
        });
    }
  }

  std::vector<Listed> find(Operation operation, int requested) {
    switch (operation) {
      case Operation::Forward:
        return listed<cudnnConvolutionFwdAlgoPerf_t>(requested, [&](int n, int* count, auto* rows) {
          return cudnnFindConvolutionForwardAlgorithm(handle_, x_, w_, conv_, y_, n, count, rows);
        });
      case Operation::BackwardData:
        return listed<cudnnConvolutionBwdDataAlgoPerf_t>(requested, [&](int n, int* count, auto* rows) {
          return cudnnFindConvolutionBackwardDataAlgorithm(handle_, w_, y_, conv_, x_, n, count, rows);
        });
      default:
        return listed<cudnnConvolutionBwdFilterAlgoPerf_t>(requested, [&](int n, int* count, auto* rows) {
          return cudnnFindConvolutionBackwardFilterAlgorithm(handle_, x_, y_, conv_, w_, n, count, rows);
        });
    }
  }

  std::vector<Listed> find(Problem& p, int requested, std::vector<std::byte> workspace) {
    void* x = p.x_memory.data();
    void* w = p.w_memory.data();
    void* y = p.y_memory.data();
    const std::size_t size = workspace.size();
    switch (p.operation) {
      case Operation::Forward:
        return listed<cudnnConvolutionFwdAlgoPerf_t>(requested, [&](int n, int* count, auto* rows) {
          return cudnnFindConvolutionForwardAlgorithmEx(handle_, x_, x, w_, w, conv_, y_, y, n, count, rows,
                                                        workspace.data(), size);
        });
      case Operation::BackwardData:
        return listed<cudnnConvolutionBwdDataAlgoPerf_t>(requested, [&](int n, int* count, auto* rows) {
          return cudnnFindConvolutionBackwardDataAlgorithmEx(handle_, w_, w, y_, y, conv_, x_, x, n, count,
                                                             rows, workspace.data(), size);
        });
      default:
        return listed<cudnnConvolutionBwdFilterAlgoPerf_t>(requested, [&](int n, int* count, auto* rows) {
          return cudnnFindConvolutionBackwardFilterAlgorithmEx(handle_, x_, x, y_, y, conv_, w_, w, n, count,
                                                               rows, workspace.data(), size);
        });
    }
  }

  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t conv_ = nullptr;
};

}  // namespace standin
