// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"math"
	"time"
)

// standardErrors is up to how many standard errors of the samples a difference counts as an error of sampling.
const standardErrors = 2

// reconciled are CPU times that were estimated from samples, after the comparison with the process.
type reconciled struct {
	goroutines float64       // by what the CPU time of all goroutines is multiplied
	outside    time.Duration // CPU time of threads outside of goroutines
}

// reconcile corrects estimates by the CPU time of the process, which is exact. Threads outside of goroutines, in which
// Go's scheduler looks for work and the kernel wakes and stops threads, are known from samples alone; goroutines are
// too if the CPUs were contended. n samples have a standard error of the square root of n. What the estimates and the
// process differ by is divided among them in proportion to their variances (least squares with an exact sum), as far as
// it is within standardErrors of them together. What is left is not an error of sampling, and stays unattributed.
func (p *Profile) reconcile(goroutines time.Duration, inGoroutines, outside int) reconciled {
	r := reconciled{1, time.Duration(outside) * Period}
	if p.CPU.Process == nil || p.CPU.Factor == nil || p.CPU.Samples == 0 {
		return r
	}
	variance, ofGoroutines := float64(max(outside, 1)), 0.0
	if *p.CPU.Factor < 1 && goroutines > 0 {
		ofGoroutines = float64(inGoroutines)
	}
	variance += ofGoroutines
	most := time.Duration(standardErrors * math.Sqrt(variance) * float64(Period))
	miss := min(max(*p.CPU.Process-goroutines-r.outside, -most), most)
	share := time.Duration(float64(miss) * ofGoroutines / variance)
	if ofGoroutines > 0 {
		// Not above the time in which they executed.
		share = min(share, p.CPU.Executing-goroutines)
		r.goroutines = float64(goroutines+share) / float64(goroutines)
	}
	outsideWas := r.outside
	r.outside = max(r.outside+min(max(miss-share, -most), most), 0)
	corrected := share + r.outside - outsideWas
	p.CPU.Corrected = &corrected
	return r
}
