// Twenty kernels without a fault. Each runs by itself in two blocks of 64 threads, with three arrays
// of 128: %in has numbers, %at has the indices from 127 down, %out has zeros (kernels.py).
gpu.func @twice(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %i = gpu.global_id x
  %x = memref.load %in[%i] : memref<?xf32>
  %y = arith.addf %x, %x : f32
  memref.store %y, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @axpy(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %a = arith.constant 3.0 : f32
  %i = gpu.global_id x
  %x = memref.load %in[%i] : memref<?xf32>
  %old = memref.load %out[%i] : memref<?xf32>
  %y = math.fma %a, %x, %old : f32
  memref.store %y, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @gather(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %i = gpu.global_id x
  %p = memref.load %at[%i] : memref<?xi32>
  %from = arith.index_cast %p : i32 to index
  %x = memref.load %in[%from] : memref<?xf32>
  memref.store %x, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @scatter(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %i = gpu.global_id x
  %p = memref.load %at[%i] : memref<?xi32>
  %to = arith.index_cast %p : i32 to index
  %x = memref.load %in[%i] : memref<?xf32>
  memref.store %x, %out[%to] : memref<?xf32>
  gpu.return
}
gpu.func @clamp(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %most = arith.constant 7.0 : f32
  %i = gpu.global_id x
  %x = memref.load %in[%i] : memref<?xf32>
  %y = arith.minimumf %x, %most : f32
  memref.store %y, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @positive(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %zero = arith.constant 0.0 : f32
  %i = gpu.global_id x
  %x = memref.load %in[%i] : memref<?xf32>
  %is = arith.cmpf ogt, %x, %zero : f32
  scf.if %is {
    memref.store %x, %out[%i] : memref<?xf32>
  }
  gpu.return
}
gpu.func @stencil(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %one = arith.constant 1 : index
  %end = arith.constant 127 : index
  %i = gpu.global_id x
  %next = arith.addi %i, %one : index
  %right = arith.minui %next, %end : index
  %x = memref.load %in[%i] : memref<?xf32>
  %r = memref.load %in[%right] : memref<?xf32>
  %y = arith.subf %r, %x : f32
  memref.store %y, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @mirror(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %end = arith.constant 127 : index
  %i = gpu.global_id x
  %other = arith.subi %end, %i : index
  %x = memref.load %in[%other] : memref<?xf32>
  memref.store %x, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @transpose(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %rows = arith.constant 8 : index
  %columns = arith.constant 16 : index
  %i = gpu.global_id x
  %row = arith.divui %i, %columns : index
  %column = arith.remui %i, %columns : index
  %first = arith.muli %column, %rows : index
  %j = arith.addi %first, %row : index
  %x = memref.load %in[%i] : memref<?xf32>
  memref.store %x, %out[%j] : memref<?xf32>
  gpu.return
}
gpu.func @rows(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %zero = arith.constant 0.0 : f32
  %begin = arith.constant 0 : index
  %one = arith.constant 1 : index
  %eight = arith.constant 8 : index
  %i = gpu.global_id x
  %row = arith.divui %i, %eight : index
  %first = arith.muli %row, %eight : index
  %sum = scf.for %k = %begin to %eight step %one iter_args(%s = %zero) -> f32 {
    %j = arith.addi %first, %k : index
    %x = memref.load %in[%j] : memref<?xf32>
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  memref.store %sum, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @product(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %zero = arith.constant 0.0 : f32
  %begin = arith.constant 0 : index
  %one = arith.constant 1 : index
  %eight = arith.constant 8 : index
  %i = gpu.global_id x
  %row = arith.divui %i, %eight : index
  %column = arith.remui %i, %eight : index
  %first = arith.muli %row, %eight : index
  %sum = scf.for %k = %begin to %eight step %one iter_args(%s = %zero) -> f32 {
    %l = arith.addi %first, %k : index
    %a = memref.load %in[%l] : memref<?xf32>
    %down = arith.muli %k, %eight : index
    %m = arith.addi %down, %column : index
    %b = memref.load %in[%m] : memref<?xf32>
    %t = math.fma %a, %b, %s : f32
    scf.yield %t : f32
  }
  memref.store %sum, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @reverse(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>)
    workgroup(%tile: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
  %last = arith.constant 63 : index
  %thread = gpu.thread_id x
  %other = arith.subi %last, %thread : index
  %i = gpu.global_id x
  %x = memref.load %in[%i] : memref<?xf32>
  memref.store %x, %tile[%other] : memref<64xf32, #gpu.address_space<workgroup>>
  gpu.barrier
  %y = memref.load %tile[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
  memref.store %y, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @rotate(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>)
    workgroup(%tile: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
  %one = arith.constant 1 : index
  %wide = arith.constant 64 : index
  %thread = gpu.thread_id x
  %next = arith.addi %thread, %one : index
  %near = arith.remui %next, %wide : index
  %i = gpu.global_id x
  %x = memref.load %in[%i] : memref<?xf32>
  memref.store %x, %tile[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
  gpu.barrier
  %y = memref.load %tile[%near] : memref<64xf32, #gpu.address_space<workgroup>>
  memref.store %y, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @total(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>)
    workgroup(%tile: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
  %zero = arith.constant 0.0 : f32
  %begin = arith.constant 0 : index
  %one = arith.constant 1 : index
  %wide = arith.constant 64 : index
  %thread = gpu.thread_id x
  %i = gpu.global_id x
  %x = memref.load %in[%i] : memref<?xf32>
  memref.store %x, %tile[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
  gpu.barrier
  %sum = scf.for %k = %begin to %wide step %one iter_args(%s = %zero) -> f32 {
    %v = memref.load %tile[%k] : memref<64xf32, #gpu.address_space<workgroup>>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  memref.store %sum, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @count(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %zero = arith.constant 0 : index
  %i = gpu.global_id x
  %x = memref.load %in[%i] : memref<?xf32>
  %sum = memref.atomic_rmw addf %x, %out[%zero] : (f32, memref<?xf32>) -> f32
  gpu.return
}
gpu.func @bins(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %eight = arith.constant 8 : index
  %i = gpu.global_id x
  %bin = arith.remui %i, %eight : index
  %x = memref.load %in[%i] : memref<?xf32>
  %sum = memref.atomic_rmw addf %x, %out[%bin] : (f32, memref<?xf32>) -> f32
  gpu.return
}
gpu.func @power(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %begin = arith.constant 0 : index
  %one = arith.constant 1 : index
  %i = gpu.global_id x
  %p = memref.load %at[%i] : memref<?xi32>
  %n = arith.index_cast %p : i32 to index
  %x = memref.load %in[%i] : memref<?xf32>
  %y = scf.for %k = %begin to %n step %one iter_args(%s = %x) -> f32 {
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  memref.store %y, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @pair(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %one = arith.constant 1 : index
  %i = gpu.global_id x
  %j = arith.xori %i, %one : index
  %x = memref.load %in[%i] : memref<?xf32>
  %y = memref.load %in[%j] : memref<?xf32>
  %z = arith.mulf %x, %y : f32
  memref.store %z, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @select(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %half = arith.constant 64 : i32
  %i = gpu.global_id x
  %p = memref.load %at[%i] : memref<?xi32>
  %x = memref.load %in[%i] : memref<?xf32>
  %n = arith.negf %x : f32
  %is = arith.cmpi ult, %p, %half : i32
  %y = arith.select %is, %x, %n : f32
  memref.store %y, %out[%i] : memref<?xf32>
  gpu.return
}
gpu.func @polynomial(%in: memref<?xf32>, %at: memref<?xi32>, %out: memref<?xf32>) kernel {
  %c0 = arith.constant 0.5 : f32
  %c1 = arith.constant 0.25 : f32
  %i = gpu.global_id x
  %x = memref.load %in[%i] : memref<?xf32>
  %y = math.fma %x, %c1, %c0 : f32
  %z = math.fma %x, %y, %c1 : f32
  memref.store %z, %out[%i] : memref<?xf32>
  gpu.return
}
