// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"github.com/kumiki-scheduler/kumiki/record"
)

const (
	// maxExamples bounds the examples, and maxReasons the number of distinct reasons: some name objects.
	maxExamples = 20
	maxReasons  = 64
	// otherReasons is the reason under which those beyond maxReasons are counted.
	otherReasons = "other reasons"
)

// distribution is a histogram of values of 0 and more: each value below 256 has its own bucket, above there are 128
// for each power of two.
type distribution struct {
	counts  map[int]int // bucket -> values in it; at most about 7,000
	n       int
	largest int64
}

func bucketOf(v int64) int {
	shift := max(0, bits.Len64(uint64(v))-8)
	return shift*128 + int(v>>shift)
}

// middleOf returns the value in the middle of a bucket.
func middleOf(bucket int) float64 {
	if bucket < 256 {
		return float64(bucket)
	}
	shift := bucket/128 - 1
	low := int64(bucket-shift*128) << shift
	return float64(low) + float64(int64(1)<<shift-1)/2
}

func (d *distribution) add(v int64) {
	if d.counts == nil {
		d.counts = map[int]int{}
	}
	v = max(v, 0)
	d.counts[bucketOf(v)]++
	d.n++
	d.largest = max(d.largest, v)
}

// quantiles returns the quantiles in a unit.
func (d *distribution) quantiles(unit float64) record.Quantiles {
	q := record.Quantiles{Count: d.n, Max: float64(d.largest) / unit}
	if d.n == 0 {
		return q
	}
	ranks := []struct {
		into *float64
		rank int // the least value with so many values up to it
	}{{&q.P50, (d.n*50 + 99) / 100}, {&q.P90, (d.n*90 + 99) / 100}, {&q.P99, (d.n*99 + 99) / 100}}
	upTo := 0
	for _, bucket := range slices.Sorted(maps.Keys(d.counts)) {
		upTo += d.counts[bucket]
		for len(ranks) > 0 && upTo >= ranks[0].rank {
			*ranks[0].into = min(middleOf(bucket), float64(d.largest)) / unit
			ranks = ranks[1:]
		}
	}
	return q
}

// agreement counts judgements by their match.
type agreement struct {
	matches map[record.Match]int // match -> pods
	regret  distribution
	plugins map[string]record.PluginRegret // plugin -> its part
}

func (a *agreement) add(j *record.Judgement) {
	if a.matches == nil {
		a.matches, a.plugins = map[record.Match]int{}, map[string]record.PluginRegret{}
	}
	a.matches[j.Match]++
	if j.Match == record.Rejected {
		return
	}
	if j.Match != record.Worse {
		a.regret.add(0)
		return
	}
	a.regret.add(j.Regret)
	for i, sc := range j.Ours.Scores {
		p := a.plugins[sc.Plugin]
		p.Plugin = sc.Plugin
		p.Sum += sc.Weighted - j.Theirs.Scores[i].Weighted
		if sc.Plugin == j.Cause {
			p.Pods++
		}
		a.plugins[sc.Plugin] = p
	}
}

func (a *agreement) report() record.ShadowAgreement {
	out := record.ShadowAgreement{
		Same: a.matches[record.SameNode], Tied: a.matches[record.Tied], Nominated: a.matches[record.Nominated],
		Worse: a.matches[record.Worse], Rejected: a.matches[record.Rejected],
	}
	agreed := out.Same + out.Tied + out.Nominated
	if out.Pods = agreed + out.Worse + out.Rejected; out.Pods > 0 {
		out.Share = float64(agreed) / float64(out.Pods)
	}
	out.Regret.Quantiles = a.regret.quantiles(1)
	for _, p := range a.plugins { // order: sorted below by a unique key
		if p.Pods > 0 || p.Sum != 0 {
			out.Regret.ByPlugin = append(out.Regret.ByPlugin, p)
		}
	}
	slices.SortFunc(out.Regret.ByPlugin, func(a, b record.PluginRegret) int {
		return cmp.Or(cmp.Compare(b.Sum, a.Sum), cmp.Compare(a.Plugin, b.Plugin))
	})
	return out
}

// dispute counts the cases of one kind.
type dispute struct {
	pods, nowhere, settled, lost int
	reasons                      map[[2]string]int // plugin and reason -> pods
}

func (d *dispute) blame(j *record.Judgement) {
	if d.reasons == nil {
		d.reasons = map[[2]string]int{}
	}
	for _, reason := range j.Reasons {
		key := [2]string{j.Plugin, reason}
		if _, known := d.reasons[key]; !known && len(d.reasons) >= maxReasons {
			key = [2]string{"", otherReasons}
		}
		d.reasons[key]++
	}
}

func (d *dispute) report() record.ShadowDispute {
	out := record.ShadowDispute{Pods: d.pods, Nowhere: d.nowhere, Settled: d.settled, Lost: d.lost}
	for key, pods := range d.reasons { // order: sorted below by a unique key
		out.Reasons = append(out.Reasons, record.ShadowReason{Plugin: key[0], Reason: key[1], Pods: pods})
	}
	slices.SortFunc(out.Reasons, func(a, b record.ShadowReason) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// severity orders kinds of examples, worst first.
var severity = []record.ShadowKind{record.ShadowRejected, record.ShadowRefused, record.ShadowWorse}

// worse orders examples, worst first; quiet ones, which have no other explanation, before others of their kind. Among
// equals the older one is first.
func worse(a, b record.ShadowExample) int {
	quiet := func(e record.ShadowExample) int {
		if e.Quiet {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(slices.Index(severity, a.Kind), slices.Index(severity, b.Kind)),
		cmp.Compare(quiet(a), quiet(b)),
		cmp.Compare(b.Judgement.Regret, a.Judgement.Regret), cmp.Compare(a.Judgement.At, b.Judgement.At))
}

// show keeps an example if it is among the worst.
func (s *Shadow) show(e record.ShadowExample) {
	at, _ := slices.BinarySearchFunc(s.examples, e, func(a, b record.ShadowExample) int {
		return cmp.Or(worse(a, b), -1)
	})
	if at < maxExamples {
		s.examples = slices.Insert(s.examples, at, e)
		s.examples = s.examples[:min(len(s.examples), maxExamples)]
	}
}

// Report returns what has been observed so far. It shares nothing that changes.
func (s *Shadow) Report() record.ShadowReport {
	r := record.ShadowReport{
		Scheduler: s.cfg.Scheduler, Profile: s.cfg.Profile, Started: s.started, At: s.Now(), Synced: s.synced,
		Nodes: s.Snapshot().Nodes(), Pods: s.pods, Agreement: s.all.report(), Quiet: s.quiet.report(),
		RejectedByUs: s.rejected.report(), RefusedByThem: s.refused.report(),
		Latency: record.ShadowLatency{Ours: s.ours.quantiles(float64(record.Second)),
			Theirs: s.theirs.quantiles(float64(record.Second))},
		Examples: slices.Clone(s.examples),
	}
	r.Pods.Pending = len(s.waiting)
	for _, d := range s.doubts {
		if d.kind == record.ShadowRejected {
			r.RejectedByUs.Open++
		} else {
			r.RefusedByThem.Open++
		}
	}
	return r
}
