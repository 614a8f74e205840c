// SPDX-License-Identifier: Apache-2.0

package victim

import (
	"cmp"
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Entry is a pod in the victim index with what sums and comparisons read of it.
type Entry struct {
	Pod                         *cluster.Pod
	Start                       record.Time
	MilliCPU, Memory, Ephemeral int64
	Priority                    int32
	Protected                   bool // for a victim: a disruption budget protects it
}

// MaxAmount is the largest single amount that is added up here. Amounts saturate, and the difference of saturated
// sums is not the sum of differences.
const MaxAmount = 1 << 50

// CompareImportance is negative if a is more important than b, so that it is spared first.
func CompareImportance(a, b Entry) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Start, b.Start))
}

// NotStarted stands for the start of a pod that has not started. Upstream takes the present, which is later than any
// start.
const NotStarted record.Time = math.MaxInt64

// StartOf returns when a pod started, NotStarted if it has not.
func StartOf(p *cluster.Pod) record.Time {
	if p.Start == 0 {
		return NotStarted
	}
	return p.Start
}

// TooLarge reports whether an amount is above MaxAmount.
func TooLarge(held *resource.Amounts) bool {
	if max(held.MilliCPU, held.Memory, held.Ephemeral) > MaxAmount {
		return true
	}
	for i := range held.Scalars {
		if held.Scalars[i].Value > MaxAmount {
			return true
		}
	}
	return false
}

// CompareNames is a total order of pods that does not depend on the cluster's history.
func CompareNames(a, b *cluster.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// NewEntry returns the entry of a pod. No disruption budget protects it yet.
func NewEntry(p *cluster.Pod) Entry {
	held := &p.Spec.Held
	return Entry{Pod: p, Start: StartOf(p), MilliCPU: held.MilliCPU, Memory: held.Memory, Ephemeral: held.Ephemeral,
		Priority: p.Spec.Priority}
}
