// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

// DurationAnnotation is the annotation by which a pod states for how long it will run, from its start, as Go writes
// durations: 90s, 1h30m.
const DurationAnnotation = "kumiki.dev/expected-duration"

// EvictableAnnotation is the annotation by which a pod declares with "true" that it may be evicted so that a gang of
// its priority or more can start.
const EvictableAnnotation = "kumiki.dev/evictable-for-gangs"

// evictable reports whether a pod may be evicted for gangs. A pod that belongs to its node may not.
func (r *GangRules) evictable(p *v1.Pod) bool {
	return r.Evictable && (p.Annotations[EvictableAnnotation] == "true" ||
		slices.Contains(r.EvictableClasses, p.Spec.PriorityClassName)) && !ofNode(p)
}

// longestDuration bounds what counts as a duration: more is a mistake of its author.
const longestDuration = 10 * 365 * 24 * time.Hour

// runsAtMost returns for how long the kubelet lets a pod run, 0 for without limit.
func runsAtMost(p *v1.Pod) record.Time {
	limit := p.Spec.ActiveDeadlineSeconds
	if limit == nil || *limit <= 0 || *limit > int64(longestDuration/time.Second) {
		return 0
	}
	return record.Time(*limit) * record.Second
}

// expectedDuration returns for how long a pod says that it will run, 0 if it does not say so in a way that can be true.
func expectedDuration(p *v1.Pod) record.Time {
	d, err := time.ParseDuration(p.Annotations[DurationAnnotation])
	if err != nil || d <= 0 || d > longestDuration {
		return 0
	}
	return record.Time(d)
}
