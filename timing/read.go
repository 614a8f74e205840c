// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Query selects what Read returns.
type Query struct {
	// Namespace and Name select pods; empty for all. With a Name there are the gangs of its pods, the evictions for
	// them, for their gangs and of them, and the requests about them; else all that Namespace selects.
	Namespace, Name string
	// Limit bounds the journeys that ended, those on their way, gangs, evictions and requests, each: the newest.
	Limit int
	// Since leaves out journeys, evictions and requests that ended before.
	Since record.Time
}

// copyAtOnce bounds what a reader copies while the loop waits: about 20 µs.
const copyAtOnce = 2 * blockSize

// Read returns what is recorded, oldest first. now and wall are the clock of the loop and the wall clock.
func (r *Recorder) Read(q Query, now, wall record.Time) record.Timing {
	out := record.Timing{Epoch: r.epoch, Since: r.since, Now: now, Wall: wall}
	over := r.endedJourneys(q)
	r.mu.Lock()
	var histograms = r.phases
	out.WatchLag = r.watchLag.report()
	out.Lost = record.Lost{Spans: r.spans.first(), Journeys: r.ended.first(), Gangs: r.endedGangs.first(),
		Evictions: r.endedEvictions.first() + r.lostEvictions}
	current := r.currentJourneys(q)
	of := related{q: q, gangs: gangsOf(over, current)}
	out.Gangs, out.Evictions = r.gangTimings(of), r.evictionTimings(of)
	names := r.names.text[:len(r.names.text):len(r.names.text)]
	r.mu.Unlock()

	for p := range histograms {
		out.Phase = append(out.Phase, record.PhaseHistogram{Phase: record.Phase(p), Histogram: histograms[p].report()})
	}
	out.Journeys = r.withSpans(over, current, names)
	r.readRequests(q, &out)
	return out
}

// Histograms returns the stays in each phase, and the lags of the watch.
func (r *Recorder) Histograms() (phases [record.Phases]record.Histogram, lag record.Histogram, lostSpans uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.phases {
		phases[p] = r.phases[p].report()
	}
	return phases, r.watchLag.report(), r.spans.first()
}

func (q *Query) selects(pod record.PodRef) bool {
	return (q.Namespace == "" || pod.Namespace == q.Namespace) && (q.Name == "" || pod.Name == q.Name)
}

// inNamespace reports whether a namespace/name is of the namespace that was asked for.
func (q *Query) inNamespace(key string) bool {
	namespace, _, _ := strings.Cut(key, "/")
	return q.Namespace == "" || namespace == q.Namespace
}

// endedJourneys copies the newest journeys that ended and are selected, newest first.
func (r *Recorder) endedJourneys(q Query) (list []ended) {
	r.mu.Lock()
	defer r.mu.Unlock()
	copied := 0
	for pos := r.ended.next; pos > r.ended.first() && len(list) < q.Limit; pos-- {
		if e := r.ended.at(pos - 1); q.selects(e.pod) && e.at >= q.Since {
			list = append(list, *e)
		}
		if copied++; copied%copyAtOnce == 0 {
			r.mu.Unlock()
			r.mu.Lock()
		}
	}
	return list
}

// current is a journey on its way, as it was read.
type current struct {
	journey
	gang string
}

func (r *Recorder) currentJourneys(q Query) (list []current) {
	for _, j := range r.active {
		if q.selects(j.pod) {
			list = append(list, current{*j, j.gangName()})
			if len(list) >= q.Limit {
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b current) int { return int(int64(a.number) - int64(b.number)) })
	return list
}

// related selects gangs and evictions.
type related struct {
	q     Query
	gangs map[string]bool // namespace/name of gangs of the pods that q selects by name
}

func gangsOf(over []ended, now []current) map[string]bool {
	gangs := map[string]bool{}
	for i := range over {
		gangs[over[i].gang] = true
	}
	for i := range now {
		gangs[now[i].gang] = true
	}
	delete(gangs, "")
	return gangs
}

func (s *related) gang(key string) bool {
	if s.q.Name != "" {
		return s.gangs[key]
	}
	return s.q.inNamespace(key)
}

func (s *related) eviction(e *record.EvictionTiming) bool {
	if s.q.selects(e.For) {
		return true
	}
	return s.q.Name != "" && (s.gangs[e.Gang] ||
		slices.ContainsFunc(e.Pods, func(v record.VictimTiming) bool { return s.q.selects(v.Pod) }))
}

func (r *Recorder) gangTimings(of related) (list []record.GangTiming) {
	for pos := r.endedGangs.next; pos > r.endedGangs.first() && len(list) < of.q.Limit; pos-- {
		if g := r.endedGangs.at(pos - 1); of.gang(g.Gang) {
			list = append(list, *g)
		}
	}
	slices.Reverse(list)
	var now []record.GangTiming
	for _, g := range r.gangs { // order: sorted below
		if of.gang(g.Gang) {
			now = append(now, g.GangTiming)
		}
	}
	slices.SortFunc(now, func(a, b record.GangTiming) int {
		return cmp.Or(cmp.Compare(a.FirstMember, b.FirstMember), strings.Compare(a.Gang, b.Gang))
	})
	return append(list, now[:min(len(now), of.q.Limit)]...)
}

// evictionTimings is called with the lock, and gives it up at times: an eviction has many victims.
func (r *Recorder) evictionTimings(of related) (list []record.EvictionTiming) {
	seen := 0
	for pos := r.endedEvictions.next; pos > r.endedEvictions.first() && len(list) < of.q.Limit; pos-- {
		e := r.endedEvictions.at(pos - 1)
		if max(e.Requested, e.Deleted, e.Gone, e.FailedAt) >= of.q.Since && of.eviction(e) {
			list = append(list, *e)
		}
		if seen++; seen%(copyAtOnce/maxVictims) == 0 {
			r.mu.Unlock()
			r.mu.Lock()
		}
	}
	slices.Reverse(list)
	var now []record.EvictionTiming
	for _, ev := range r.evictions { // order: sorted below
		if of.eviction(&ev.EvictionTiming) {
			now = append(now, ev.report())
		}
	}
	slices.SortFunc(now, func(a, b record.EvictionTiming) int {
		return cmp.Or(cmp.Compare(a.Decision, b.Decision), strings.Compare(a.For.UID, b.For.UID))
	})
	return append(list, now[:min(len(now), of.q.Limit)]...)
}

// withSpans returns the journeys with their spans, in the order in which they began. over is newest first.
func (r *Recorder) withSpans(over []ended, now []current, names []string) []record.Journey {
	list := make([]record.Journey, 0, len(over)+len(now))
	at := make(map[uint64]int, len(over)+len(now)) // number of a journey -> index in list
	want := map[int]int{}                          // index in list -> spans that were written
	var first, last uint64
	note := func(number uint64, spans int, from, to uint64) {
		at[number], want[len(list)] = len(list), spans
		if spans == 0 {
			return
		}
		if last == 0 {
			first = from
		}
		first, last = min(first, from), max(last, to+1)
	}
	for _, e := range slices.Backward(over) {
		note(e.number, e.spans, e.first, e.last)
		list = append(list, e.report())
	}
	for i := range now {
		c := &now[i]
		if _, ended := at[c.number]; ended {
			continue
		}
		note(c.number, c.spans, c.first, c.last)
		list = append(list, record.Journey{Pod: c.pod, Gang: c.gang, Node: c.node, Began: c.began,
			Attempts: int(c.attempts), Listed: c.listed})
	}
	r.eachSpan(first, last, func(s *span) {
		if i, is := at[s.journey]; is && len(list[i].Spans) < want[i] {
			list[i].Spans = append(list[i].Spans, s.report(names))
		}
	})
	for i := range list {
		list[i].LostSpans = want[i] - len(list[i].Spans)
	}
	for i := range now {
		j := &list[at[now[i].number]]
		if j.Ended == 0 {
			j.Spans = append(j.Spans, now[i].open(names)...)
		}
	}
	slices.SortStableFunc(list, func(a, b record.Journey) int { return int(a.Began - b.Began) })
	return list
}

// report returns a journey without its spans.
func (e *ended) report() record.Journey {
	j := record.Journey{Pod: e.pod, Gang: e.gang, Node: e.node, Began: e.began, Ended: e.at, End: e.how,
		Attempts: int(e.attempts), Listed: e.listed}
	if e.probed {
		lag := e.lag
		j.WatchLag = &lag
	}
	if e.bind != (ID{}) {
		j.BindRequest = e.bind.String()
	}
	return j
}

// open returns the spans of a journey on its way that are not written. The last one goes on, so it took nothing yet.
func (c *current) open(names []string) []record.PhaseSpan {
	one := func(p record.Phase, at record.Time, took record.Time) record.PhaseSpan {
		s := span{phase: p, start: at, took: took, attempt: c.attempts, plugins: c.plugins}
		return s.report(names)
	}
	if c.place != bound {
		return []record.PhaseSpan{one(c.phase, c.since, 0)}
	}
	var list []record.PhaseSpan
	phase, since := c.phase, c.since
	after := c.bindPhases(c.answered)
	for _, b := range append(after[:], begins{record.PhaseConfirming, c.answered}) {
		if b.at > since {
			list = append(list, one(phase, since, b.at-since))
		}
		phase, since = b.phase, b.at
	}
	return append(list, one(phase, since, 0))
}

// eachSpan visits the spans from one position up to another that are still kept, a part at a time.
func (r *Recorder) eachSpan(from, to uint64, visit func(*span)) {
	part := make([]span, 0, copyAtOnce)
	for from < to {
		part = part[:0]
		r.mu.Lock()
		from = max(from, r.spans.first())
		to = min(to, r.spans.next)
		for ; from < to && len(part) < copyAtOnce; from++ {
			part = append(part, *r.spans.at(from))
		}
		r.mu.Unlock()
		for i := range part {
			visit(&part[i])
		}
	}
}

func (s *span) report(names []string) record.PhaseSpan {
	out := record.PhaseSpan{Phase: s.phase, Start: s.start, Took: s.took, Attempt: int(s.attempt),
		Event: text(names, s.event), Hint: text(names, s.hint)}
	if s.plugins != 0 {
		out.Plugins = strings.Split(text(names, s.plugins), ",")
	}
	return out
}

// text returns a name that may be newer than the names.
func text(names []string, n name) string {
	if int(n) < len(names) {
		return names[n]
	}
	return names[tooMany]
}

// readRequests copies the newest requests that are selected.
func (r *Recorder) readRequests(q Query, out *record.Timing) {
	part := make([]Request, 0, copyAtOnce)
	kept := &r.requests.kept
	r.requests.mu.Lock()
	pos := kept.next
	out.Lost.Requests = kept.first()
	r.requests.mu.Unlock()
	for pos > 0 && len(out.Requests) < q.Limit {
		part = part[:0]
		r.requests.mu.Lock()
		for ; pos > kept.first() && len(part) < copyAtOnce; pos-- {
			part = append(part, *kept.at(pos - 1))
		}
		r.requests.mu.Unlock()
		if len(part) == 0 {
			break
		}
		for i := range part {
			if t, selected := q.request(&part[i]); selected && len(out.Requests) < q.Limit {
				out.Requests = append(out.Requests, t)
			}
		}
	}
	slices.Reverse(out.Requests)
}

// request returns a request as a record, and whether it is selected.
func (q *Query) request(of *Request) (t record.RequestTiming, selected bool) {
	if of.End < q.Since || !strings.Contains(of.Path, q.Namespace) || !strings.Contains(of.Path, q.Name) {
		return t, false
	}
	t = of.report()
	if q.Name != "" && t.Resource != "pods" && !strings.HasPrefix(t.Resource, "pods/") {
		return t, false
	}
	return t, q.selects(record.PodRef{Namespace: t.Namespace, Name: t.Name})
}
