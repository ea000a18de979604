// Functions that need no GPU: each way in which numbers and memrefs are passed and returned.
!any = memref<?x?xf32, strided<[?, ?], offset: ?>>

memref.global "private" constant @table : memref<3xi32> = dense<[1, 2, 3]>

func.func private @elsewhere(memref<*xf32>)

func.func @sum(%a: !any) -> f32 attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = memref.dim %a, %zero : !any
  %columns = memref.dim %a, %one : !any
  %none = arith.constant 0.0 : f32
  %all = scf.for %i = %zero to %rows step %one iter_args(%before = %none) -> f32 {
    %row = scf.for %j = %zero to %columns step %one iter_args(%left = %before) -> f32 {
      %value = memref.load %a[%i, %j] : !any
      %sum = arith.addf %left, %value : f32
      scf.yield %sum : f32
    }
    scf.yield %row : f32
  }
  return %all : f32
}

func.func @sum_expanded(%a: !any) -> f32 {
  %sum = func.call @sum(%a) : (!any) -> f32
  return %sum : f32
}

func.func @double(%a: memref<?xf32>) -> memref<?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %count = memref.dim %a, %zero : memref<?xf32>
  %doubled = memref.alloc(%count) {alignment = 64} : memref<?xf32>
  scf.for %i = %zero to %count step %one {
    %value = memref.load %a[%i] : memref<?xf32>
    %sum = arith.addf %value, %value : f32
    memref.store %sum, %doubled[%i] : memref<?xf32>
  }
  return %doubled : memref<?xf32>
}

// A number, a memref of its own, a constant, its argument, the first memref again, numbers.
func.func @many(%a: memref<?xf32>, %k: i8)
    -> (i1, memref<?xf32>, f32, memref<3xi32>, memref<?xf32>, memref<?xf32>, i8, f64, index)
    attributes {llvm.emit_c_interface} {
  %truth = arith.constant true
  %half = arith.constant 1.5 : f32
  %tenth = arith.constant 0.1 : f64
  %index = arith.constant -7 : index
  %table = memref.get_global @table : memref<3xi32>
  %own = func.call @double(%a) : (memref<?xf32>) -> memref<?xf32>
  return %truth, %own, %half, %table, %a, %own, %k, %tenth, %index
    : i1, memref<?xf32>, f32, memref<3xi32>, memref<?xf32>, memref<?xf32>, i8, f64, index
}

func.func @many_expanded(%a: memref<?xf32>, %k: i8)
    -> (i1, memref<?xf32>, f32, memref<3xi32>, memref<?xf32>, memref<?xf32>, i8, f64, index) {
  %r:9 = func.call @many(%a, %k) : (memref<?xf32>, i8)
    -> (i1, memref<?xf32>, f32, memref<3xi32>, memref<?xf32>, memref<?xf32>, i8, f64, index)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7, %r#8
    : i1, memref<?xf32>, f32, memref<3xi32>, memref<?xf32>, memref<?xf32>, i8, f64, index
}

func.func @half(%a: f16) -> f16 {
  %sum = arith.addf %a, %a : f16
  return %sum : f16
}

func.func @twice(%a: f32) -> f32 {
  %sum = arith.addf %a, %a : f32
  return %sum : f32
}

func.func @flip(%a: i1) -> i1 {
  %truth = arith.constant true
  %flipped = arith.xori %a, %truth : i1
  return %flipped : i1
}

// Numbers of each type: a + 2b + 4c + 8d + 16e + 32f + 64g.
func.func @weigh(%a: i8, %b: i16, %c: i32, %d: i64, %e: index, %f: f32, %g: f64) -> f64
    attributes {llvm.emit_c_interface} {
  %two = arith.constant 2.0 : f64
  %e64 = arith.index_cast %e : index to i64
  %a1 = arith.sitofp %a : i8 to f64
  %b1 = arith.sitofp %b : i16 to f64
  %c1 = arith.sitofp %c : i32 to f64
  %d1 = arith.sitofp %d : i64 to f64
  %e1 = arith.sitofp %e64 : i64 to f64
  %f1 = arith.extf %f : f32 to f64
  %s1 = arith.mulf %g, %two : f64
  %s2 = arith.addf %s1, %f1 : f64
  %s3 = arith.mulf %s2, %two : f64
  %s4 = arith.addf %s3, %e1 : f64
  %s5 = arith.mulf %s4, %two : f64
  %s6 = arith.addf %s5, %d1 : f64
  %s7 = arith.mulf %s6, %two : f64
  %s8 = arith.addf %s7, %c1 : f64
  %s9 = arith.mulf %s8, %two : f64
  %s10 = arith.addf %s9, %b1 : f64
  %s11 = arith.mulf %s10, %two : f64
  %s12 = arith.addf %s11, %a1 : f64
  return %s12 : f64
}

func.func @weigh_expanded(%a: i8, %b: i16, %c: i32, %d: i64, %e: index, %f: f32, %g: f64) -> f64 {
  %r = func.call @weigh(%a, %b, %c, %d, %e, %f, %g)
    : (i8, i16, i32, i64, index, f32, f64) -> f64
  return %r : f64
}

func.func @one_element(%a: f32) -> memref<f32> attributes {llvm.emit_c_interface} {
  %made = memref.alloc() : memref<f32>
  memref.store %a, %made[] : memref<f32>
  return %made : memref<f32>
}

func.func @rank(%a: memref<*xf32>) -> index {
  %rank = memref.rank %a : memref<*xf32>
  return %rank : index
}

// Lowered code adds this offset and multiplies by this stride, whatever the descriptor says.
func.func @at_offset(%a: memref<4xf32, strided<[2], offset: 3>>) -> f32 {
  %one = arith.constant 1 : index
  %value = memref.load %a[%one] : memref<4xf32, strided<[2], offset: 3>>
  return %value : f32
}

func.func @fixed(%a: memref<2x3xi32>, %b: memref<?xindex>, %c: memref<2xi1>, %d: memref<1xbf16>) {
  return
}

func.func @pair(%a: i32) -> (i32, i32) {
  return %a, %a : i32, i32
}

func.func @vectors(%a: vector<4xf32>) -> vector<4xf32> {
  return %a : vector<4xf32>
}

func.func @takes_vector(%a: vector<4xf32>) {
  return
}

func.func @"an odd \22name\22"() -> i64 {
  %answer = arith.constant 42 : i64
  return %answer : i64
}

module @nested {
  func.func @hidden() {
    return
  }
}
