// Work on several streams, in the right order: by tokens, by the host's waits, by events. Each
// function is a program of its own. The comments "fault" take the order out (mutants/form.py).
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @set(%out: memref<?xi32>, %value: i32) kernel {
      %i = gpu.global_id x
      memref.store %value, %out[%i] : memref<?xi32>
      gpu.return
    }
    gpu.func @set_right(%out: memref<?xi32>, %value: i32) kernel {
      %half = arith.constant 64 : index
      %i = gpu.global_id x
      %right = arith.addi %i, %half : index
      memref.store %value, %out[%right] : memref<?xi32>
      gpu.return
    }
    gpu.func @add(%out: memref<?xi32>, %in: memref<?xi32>) kernel {
      %i = gpu.global_id x
      %x = memref.load %in[%i] : memref<?xi32>
      %y = memref.load %out[%i] : memref<?xi32>
      %sum = arith.addi %x, %y : i32
      memref.store %sum, %out[%i] : memref<?xi32>
      gpu.return
    }
    gpu.func @count(%out: memref<?xi32>) kernel {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : i32
      %old = memref.atomic_rmw addi %one, %out[%zero] : (i32, memref<?xi32>) -> i32
      gpu.return
    }
  }

  func.func private @mgpuMemGetDeviceMemRef1dInt32(memref<?xi32>) -> memref<?xi32>
  func.func private @mgpuStreamCreate() -> !llvm.ptr
  func.func private @mgpuStreamDestroy(!llvm.ptr)
  func.func private @mgpuStreamSynchronize(!llvm.ptr)
  func.func private @mgpuStreamWaitEvent(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventCreate() -> !llvm.ptr
  func.func private @mgpuEventDestroy(!llvm.ptr)
  func.func private @mgpuEventRecord(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventSynchronize(!llvm.ptr)

  // A copy in, a launch that waits for it, a copy back that waits for both.
  func.func @tokens() {
    %one = arith.constant 1 : index
    %count = arith.constant 64 : index
    %value = arith.constant 3 : i32
    %host = memref.alloc(%count) : memref<?xi32>
    %t0 = gpu.wait async
    %in, %t1 = gpu.alloc async [%t0] (%count) : memref<?xi32>
    %out, %t2 = gpu.alloc async [%t1] (%count) : memref<?xi32>
    // fault: token of an allocation left out; early-use never-destroyed; %zeroed = gpu.memset; %u0 = gpu.wait async \n %zeroed = gpu.memset async [%u0] %out, %value : memref<?xi32>, i32
    %zeroed = gpu.memset async [%t2] %out, %value : memref<?xi32>, i32
    gpu.wait [%zeroed]
    %a0 = gpu.wait async
    %copied = gpu.memcpy async [%a0] %in, %host : memref<?xi32>, memref<?xi32>
    %b0 = gpu.wait async
    // fault: token left out; stream-race; %copied = gpu.memcpy; %b1 = gpu.wait async [%b0]
    %b1 = gpu.wait async [%b0, %copied]
    // fault: work on another stream; stream-race use-after-destroy never-destroyed; %in[; %added = gpu.launch_func async [%b0] @kernels::@add
    %added = gpu.launch_func async [%b1] @kernels::@add
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        // fault: free moved up; early-free never-destroyed; %dx =; args(%out : memref<?xi32>, %in : memref<?xi32>) \n %c0 = gpu.wait async \n %dx = gpu.dealloc async [%c0] %in : memref<?xi32> \n return \n } \n func.func @rest(%host: memref<?xi32>, %in: memref<?xi32>, %out: memref<?xi32>, \n %a0: !gpu.async.token, %b0: !gpu.async.token, %added: !gpu.async.token) {
        args(%out : memref<?xi32>, %in : memref<?xi32>)
    %c0 = gpu.wait async
    // fault: token left out; stream-race; memref.store %sum; %c1 = gpu.wait async [%c0]
    %c1 = gpu.wait async [%c0, %added]
    // fault: work on another stream; stream-race use-after-destroy never-destroyed; %back =; %back = gpu.memcpy async [%c0] %host, %out : memref<?xi32>, memref<?xi32>
    %back = gpu.memcpy async [%c1] %host, %out : memref<?xi32>, memref<?xi32>
    // fault: wait left out; missing-wait never-destroyed; %back =; gpu.wait [%a0, %b0, %c0, %added]
    gpu.wait [%back, %a0, %b0, %c0, %added]
    %d0 = gpu.wait async
    %d1 = gpu.dealloc async [%d0] %in : memref<?xi32>
    %d2 = gpu.dealloc async [%d1] %out : memref<?xi32>
    gpu.wait [%d2]
    memref.dealloc %host : memref<?xi32>
    return
  }

  // Two launches on two streams, and the host waits between them.
  func.func @waits() {
    %one = arith.constant 1 : index
    %count = arith.constant 64 : index
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %host = memref.alloc(%count) : memref<?xi32>
    %t0 = gpu.wait async
    %out, %t1 = gpu.alloc async [%t0] (%count) : memref<?xi32>
    gpu.wait [%t1]
    %a = gpu.wait async
    %b = gpu.wait async
    %first = gpu.launch_func async [%a] @kernels::@set
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%out : memref<?xi32>, %three : i32)
    // fault: wait left out; stream-race never-destroyed; memref.store %value;
    // fault: wait left out; stream-race; memref.store %value; %sone = builtin.unrealized_conversion_cast %first : !gpu.async.token to !llvm.ptr \n func.call @mgpuStreamDestroy(%sone) : (!llvm.ptr) -> ()
    gpu.wait [%first]
    %second = gpu.launch_func async [%b] @kernels::@set
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%out : memref<?xi32>, %four : i32)
    // fault: wait left out; stream-race never-destroyed; %third = gpu.memset;
    // fault: wait left out; stream-race; %third = gpu.memset; %stwo = builtin.unrealized_conversion_cast %second : !gpu.async.token to !llvm.ptr \n func.call @mgpuStreamDestroy(%stwo) : (!llvm.ptr) -> ()
    gpu.wait [%second]
    %c = gpu.wait async
    %third = gpu.memset async [%c] %out, %three : memref<?xi32>, i32
    // fault: wait left out; stream-race never-destroyed; %fourth = gpu.memcpy;
    // fault: wait left out; stream-race; %fourth = gpu.memcpy; %sthree = builtin.unrealized_conversion_cast %third : !gpu.async.token to !llvm.ptr \n func.call @mgpuStreamDestroy(%sthree) : (!llvm.ptr) -> ()
    gpu.wait [%third]
    %d = gpu.wait async
    %fourth = gpu.memcpy async [%d] %host, %out : memref<?xi32>, memref<?xi32>
    // fault: wait left out; missing-wait never-destroyed; %fourth =;
    gpu.wait [%fourth]
    %e = gpu.wait async
    %fifth = gpu.dealloc async [%e] %out : memref<?xi32>
    gpu.wait [%fifth]
    memref.dealloc %host : memref<?xi32>
    return
  }

  // What needs no order: two streams read, count by atomic sums, write parts of their own, or store
  // one value.
  func.func @together() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %half = arith.constant 64 : index
    %count = arith.constant 128 : index
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %t0 = gpu.wait async
    %in, %t1 = gpu.alloc async [%t0] (%count) : memref<?xi32>
    %x, %t2 = gpu.alloc async [%t1] (%count) : memref<?xi32>
    %y, %t3 = gpu.alloc async [%t2] (%count) : memref<?xi32>
    %t4 = gpu.memset async [%t3] %in, %three : memref<?xi32>, i32
    %t5 = gpu.memset async [%t4] %x, %three : memref<?xi32>, i32
    %t6 = gpu.memset async [%t5] %y, %three : memref<?xi32>, i32
    gpu.wait [%t6]
    %a0 = gpu.wait async
    %b0 = gpu.wait async
    %a1 = gpu.launch_func async [%a0] @kernels::@add
        // fault: size grown; stream-race; memref.store %value, %out[%right]; blocks in (%one, %one, %one) threads in (%count, %one, %one)
        blocks in (%one, %one, %one) threads in (%half, %one, %one)
        // fault: another allocation; stream-race; memref.atomic_rmw; args(%x : memref<?xi32>, %in : memref<?xi32>)
        args(%y : memref<?xi32>, %in : memref<?xi32>)
    %b1 = gpu.launch_func async [%b0] @kernels::@set_right
        blocks in (%one, %one, %one) threads in (%half, %one, %one)
        args(%y : memref<?xi32>, %three : i32)
    %b2 = gpu.launch_func async [%b1] @kernels::@count
        blocks in (%one, %one, %one) threads in (%half, %one, %one) args(%x : memref<?xi32>)
    %a2 = gpu.launch_func async [%a1] @kernels::@count
        blocks in (%one, %one, %one) threads in (%half, %one, %one) args(%x : memref<?xi32>)
    // fault: wait left out; stream-race never-destroyed; memref.atomic_rmw;
    gpu.wait [%a2, %b2]
    %c0 = gpu.wait async
    %d0 = gpu.wait async
    %c1 = gpu.launch_func async [%c0] @kernels::@set
        blocks in (%one, %one, %one) threads in (%half, %one, %one)
        args(%x : memref<?xi32>, %three : i32)
    %d1 = gpu.launch_func async [%d0] @kernels::@set
        blocks in (%one, %one, %one) threads in (%half, %one, %one)
        // fault: value changed; stream-race; memref.store %value, %out[%i]; args(%x : memref<?xi32>, %four : i32)
        args(%x : memref<?xi32>, %three : i32)
    // fault: free moved up (4 lines); early-free; %e2 = gpu.dealloc; %e0 = gpu.wait async \n %e2 = gpu.dealloc async [%e0] %x : memref<?xi32> \n gpu.wait [%c1, %d1] \n %e1 = gpu.dealloc async [%e2] %in : memref<?xi32>
    gpu.wait [%c1, %d1]
    %e0 = gpu.wait async
    %e1 = gpu.dealloc async [%e0] %in : memref<?xi32>
    %e2 = gpu.dealloc async [%e1] %x : memref<?xi32>
    %e3 = gpu.dealloc async [%e2] %y : memref<?xi32>
    gpu.wait [%e3]
    return
  }

  // A chain of four streams by events, as LLVM lowers tokens: create, record, wait, destroy.
  func.func @events() {
    %one = arith.constant 1 : index
    %count = arith.constant 64 : index
    %three = arith.constant 3 : i32
    %a = func.call @mgpuStreamCreate() : () -> !llvm.ptr
    %b = func.call @mgpuStreamCreate() : () -> !llvm.ptr
    %c = func.call @mgpuStreamCreate() : () -> !llvm.ptr
    %ta = builtin.unrealized_conversion_cast %a : !llvm.ptr to !gpu.async.token
    %tb = builtin.unrealized_conversion_cast %b : !llvm.ptr to !gpu.async.token
    %tc = builtin.unrealized_conversion_cast %c : !llvm.ptr to !gpu.async.token
    %out, %tb1 = gpu.alloc async [%tb] (%count) : memref<?xi32>
    %in, %ta1 = gpu.alloc async [%ta] (%count) : memref<?xi32>
    %first = gpu.memset async [%ta] %in, %three : memref<?xi32>, i32
    %e = func.call @mgpuEventCreate() : () -> !llvm.ptr
    // fault: event dropped; unrecorded-event stream-race; @mgpuStreamWaitEvent(%b, %e);
    // fault: work on another stream; stream-race; %first = gpu.; func.call @mgpuEventRecord(%e, %b) : (!llvm.ptr, !llvm.ptr) -> ()
    func.call @mgpuEventRecord(%e, %a) : (!llvm.ptr, !llvm.ptr) -> ()
    %second = gpu.memset async [%tb] %out, %three : memref<?xi32>, i32
    // fault: wait left out; stream-race; %first = gpu.memset;
    // fault: work on another stream; stream-race; %first =; func.call @mgpuStreamWaitEvent(%c, %e) : (!llvm.ptr, !llvm.ptr) -> ()
    func.call @mgpuStreamWaitEvent(%b, %e) : (!llvm.ptr, !llvm.ptr) -> ()
    // fault: work on another stream; stream-race; %second = gpu.memset; %third = gpu.launch_func async [%tc] @kernels::@add
    %third = gpu.launch_func async [%tb] @kernels::@add
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%out : memref<?xi32>, %in : memref<?xi32>)
    // fault: handle misused; use-after-destroy; @mgpuStreamWaitEvent(%a, %e); func.call @mgpuEventDestroy(%e) : (!llvm.ptr) -> () \n func.call @mgpuStreamWaitEvent(%a, %e) : (!llvm.ptr, !llvm.ptr) -> ()
    // fault: object left behind; never-destroyed; %e = func.call;
    func.call @mgpuEventDestroy(%e) : (!llvm.ptr) -> ()
    %f = func.call @mgpuEventCreate() : () -> !llvm.ptr
    // fault: event dropped; unrecorded-event stream-race; @mgpuStreamWaitEvent(%c, %f);
    // fault: work on another stream; stream-race; %in[; func.call @mgpuEventRecord(%f, %a) : (!llvm.ptr, !llvm.ptr) -> ()
    func.call @mgpuEventRecord(%f, %b) : (!llvm.ptr, !llvm.ptr) -> ()
    // fault: wait left out; stream-race; %in[;
    func.call @mgpuStreamWaitEvent(%c, %f) : (!llvm.ptr, !llvm.ptr) -> ()
    %fourth = gpu.launch_func async [%tc] @kernels::@set
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%in : memref<?xi32>, %three : i32)
    // fault: event dropped; stream-race; %in[;
    func.call @mgpuEventRecord(%f, %c) : (!llvm.ptr, !llvm.ptr) -> ()
    // fault: wait left out; stream-race; %in[;
    // fault: handle misused; stream-as-event; @mgpuEventSynchronize(%c); func.call @mgpuEventSynchronize(%c) : (!llvm.ptr) -> ()
    func.call @mgpuEventSynchronize(%f) : (!llvm.ptr) -> ()
    %fifth = gpu.launch_func async [%ta] @kernels::@add
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%out : memref<?xi32>, %in : memref<?xi32>)
    // fault: object left behind; never-destroyed; %f = func.call;
    func.call @mgpuEventDestroy(%f) : (!llvm.ptr) -> ()
    %freed = gpu.dealloc async [%ta] %out : memref<?xi32>
    %freed2 = gpu.dealloc async [%ta] %in : memref<?xi32>
    func.call @mgpuStreamSynchronize(%a) : (!llvm.ptr) -> ()
    func.call @mgpuStreamDestroy(%c) : (!llvm.ptr) -> ()
    // fault: handle misused; use-after-destroy; @mgpuStreamSynchronize(%b); func.call @mgpuStreamDestroy(%b) : (!llvm.ptr) -> () \n func.call @mgpuStreamSynchronize(%b) : (!llvm.ptr) -> ()
    // fault: object left behind; never-destroyed; %b = func.call;
    func.call @mgpuStreamDestroy(%b) : (!llvm.ptr) -> ()
    func.call @mgpuStreamDestroy(%a) : (!llvm.ptr) -> ()
    return
  }

  // Memory of the host that kernels and copies use.
  func.func @registered() {
    %one = arith.constant 1 : index
    %count = arith.constant 64 : index
    %three = arith.constant 3 : i32
    %host = memref.alloc(%count) : memref<?xi32>
    %unranked = memref.cast %host : memref<?xi32> to memref<*xi32>
    gpu.host_register %unranked : memref<*xi32>
    %seen = func.call @mgpuMemGetDeviceMemRef1dInt32(%host) : (memref<?xi32>) -> memref<?xi32>
    %t0 = gpu.wait async
    %out, %t1 = gpu.alloc async [%t0] (%count) : memref<?xi32>
    gpu.wait [%t1]
    %a0 = gpu.wait async
    %a1 = gpu.launch_func async [%a0] @kernels::@set
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%seen : memref<?xi32>, %three : i32)
    // fault: wait left out; stream-race never-destroyed; %b1 = gpu.memcpy;
    // fault: wait left out; stream-race; %b1 = gpu.memcpy; %sone = builtin.unrealized_conversion_cast %a1 : !gpu.async.token to !llvm.ptr \n func.call @mgpuStreamDestroy(%sone) : (!llvm.ptr) -> ()
    gpu.wait [%a1]
    %b0 = gpu.wait async
    %b1 = gpu.memcpy async [%b0] %out, %host : memref<?xi32>, memref<?xi32>
    // fault: wait left out; stream-race never-destroyed; %b1 = gpu.memcpy;
    gpu.wait [%b1]
    %c0 = gpu.wait async
    %c1 = gpu.launch_func async [%c0] @kernels::@add
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%seen : memref<?xi32>, %out : memref<?xi32>)
    // fault: wait left out; stream-race never-destroyed; %d1 = gpu.memcpy;
    gpu.wait [%c1]
    %d0 = gpu.wait async
    %d1 = gpu.memcpy async [%d0] %host, %out : memref<?xi32>, memref<?xi32>
    // fault: unregister moved up (2 lines); early-unregister; gpu.host_unregister; gpu.host_unregister %unranked : memref<*xi32> \n gpu.wait [%d1]
    // fault: free moved up (4 lines); early-free; %e1 = gpu.dealloc; %e0 = gpu.wait async \n %e1 = gpu.dealloc async [%e0] %out : memref<?xi32> \n gpu.wait [%d1] \n gpu.host_unregister %unranked : memref<*xi32>
    gpu.wait [%d1]
    gpu.host_unregister %unranked : memref<*xi32>
    %e0 = gpu.wait async
    %e1 = gpu.dealloc async [%e0] %out : memref<?xi32>
    gpu.wait [%e1]
    memref.dealloc %host : memref<?xi32>
    return
  }

  func.func @main() -> i32 {
    %status = arith.constant 0 : i32
    func.call @tokens() : () -> ()
    func.call @waits() : () -> ()
    func.call @together() : () -> ()
    func.call @events() : () -> ()
    func.call @registered() : () -> ()
    return %status : i32
  }
}
