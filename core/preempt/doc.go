// SPDX-License-Identifier: Apache-2.0

// Package preempt owns the question whom to evict so that a pod fits: which nodes evictions can help on, which pods would
// have to go there, and on which node the loss is smallest.
//
// It gives the answer of upstream's DefaultPreemption (pkg/scheduler/framework/preemption, plugins/defaultpreemption) for
// one pod. It changes nothing: the engine acts on the answer.
package preempt
