// SPDX-License-Identifier: Apache-2.0

// Package apm owns the analysis of profiles: from the Go execution trace, the CPU samples in it, the allocation profile
// and the metrics of a bundle it computes which lanes and functions of a scheduler use the CPU, what they wait for, and
// what a scheduling cycle takes. It works on the file alone, of kumiki and of an unmodified kube-scheduler.
//
// Time of a goroutine: the trace has each change between running, runnable, waiting and in a system call, so these
// times are exact, and their sum is the life of the goroutine within the trace.
//
// CPU time: Go does not record it per goroutine. A goroutine that runs uses a CPU, unless the operating system has
// preempted its thread. So the CPU time of a lane is its executing time (running, or in a system call with a processor)
// multiplied by a factor: the sampled CPU time of goroutines divided by their executing time. The kernel's timers count
// CPU time of a thread, 10 ms a sample. Where the factor is 1 within the error of sampling, executing time is CPU time.
// The CPU time of the process is an upper limit. Where the factor is below 1, it is corrected for each lane by the
// samples of the lane. Within a lane, CPU time is divided among functions by samples.
//
// The lanes and a residual add up to the CPU time of the process, which the scheduler reports in its metrics. The
// residual contains the CPU time between the two scrapes but outside of the trace.
//
// What a profile does not have is nil with a reason in Profile.Unknown, never 0.
//
// Rejected: CPU profiles alone. At 100 samples a second they miss a decision of 10 µs, and contain no waits. Rejected:
// running time as CPU time, on machines whose CPUs are contended.
package apm
