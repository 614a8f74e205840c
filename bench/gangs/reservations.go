// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// listScheduler is a batch scheduler as the literature on backfill has it: jobs wait in the order of their arrival, a
// job starts as a whole, and how long each runs is known. Machines are slots; there are no other constraints, no
// priorities and no failures. Its two forms are EASY (Lifka, The ANL/IBM SP scheduling system, 1995: a reservation for
// the first job) and conservative backfill (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001: one for each job).
type listScheduler struct {
	conservative bool
	nodes        []*machine
	jobs         []*job // in the order of their arrival; those that run are not in it
	// running has each pod with a slot.
	running map[cluster.UID]*slot // pod -> its slot
	now     record.Time
	number  uint64
	// next is the job that starts in the next cycle, nil for none; known is set while that is computed.
	next    *job
	known   bool
	effects []engine.Effect
}

// machine is a node.
type machine struct {
	name        string
	slots, free int
}

// slot is the slot of a running pod.
type slot struct {
	pod  *cluster.Pod
	on   *machine
	ends record.Time // forever where it is not known
}

// job is a gang, or a pod by itself.
type job struct {
	key  cluster.GangKey
	size int
	pods []*cluster.Pod // that wait
}

const forever = record.Time(math.MaxInt64)

// newListScheduler makes one that knows no nodes and no pods.
func newListScheduler(conservative bool) *listScheduler {
	return &listScheduler{conservative: conservative, running: map[cluster.UID]*slot{}}
}

// Ready reports whether a job can start.
func (l *listScheduler) Ready() bool {
	if !l.known {
		l.known = true
		if l.next = l.firstByEASY(); l.conservative {
			l.next = l.firstByReservations()
		}
	}
	return l.next != nil
}

// Binding returns 0: a job starts as a whole.
func (l *listScheduler) Binding() int { return 0 }

// Step takes one event and returns its effects, which are valid until the next Step.
func (l *listScheduler) Step(ev engine.Event) []engine.Effect {
	l.effects = l.effects[:0]
	switch ev := ev.(type) {
	case engine.NodeSet:
		slots := int(ev.Node.Allocatable.MilliCPU / 1000)
		l.nodes = append(l.nodes, &machine{ev.Node.Name, slots, slots})
	case engine.PodSet:
		l.setPod(ev.Pod)
	case engine.PodGone:
		l.deletePod(cluster.UID(ev.Pod.UID))
	case engine.Tick:
		l.now = max(l.now, ev.Now)
	case engine.BindDone, engine.Synced:
	case engine.Cycle:
		if l.Ready() {
			l.start(l.next)
		}
	default:
		panic(fmt.Sprintf("gangs: event of type %T", ev))
	}
	l.known = false
	return l.effects
}

// setPod follows a pod that is new or has changed.
func (l *listScheduler) setPod(p *cluster.Pod) {
	if p.NodeName != "" {
		on := l.nodes[slices.IndexFunc(l.nodes, func(m *machine) bool { return m.name == p.NodeName })]
		s := l.running[p.UID]
		if s == nil { // it runs since before the start
			s = &slot{on: on}
			l.running[p.UID] = s
			on.free -= need(p)
		}
		s.pod = p
		if long := lasts(p); long != forever {
			s.ends = cmp.Or(p.Start, l.now) + long
		} else {
			s.ends = forever
		}
		return
	}
	if l.running[p.UID] != nil {
		return // its bind is not seen yet
	}
	if p.Gang == nil {
		l.deletePod(p.UID)
		l.jobs = append(l.jobs, &job{size: 1, pods: []*cluster.Pod{p}})
		return
	}
	i := slices.IndexFunc(l.jobs, func(j *job) bool { return j.key == p.Gang.Key })
	if i < 0 {
		i = len(l.jobs)
		l.jobs = append(l.jobs, &job{key: p.Gang.Key, size: p.Gang.Size - l.runningOf(p.Gang.Key)})
	}
	j := l.jobs[i]
	if at := slices.IndexFunc(j.pods, func(o *cluster.Pod) bool { return o.UID == p.UID }); at >= 0 {
		j.pods[at] = p
		return
	}
	j.pods = append(j.pods, p)
}

// runningOf returns how many pods of a gang have a slot.
func (l *listScheduler) runningOf(key cluster.GangKey) (n int) {
	for _, s := range l.running { // order: counts
		if s.pod.Gang != nil && s.pod.Gang.Key == key {
			n++
		}
	}
	return n
}

// deletePod forgets a pod.
func (l *listScheduler) deletePod(uid cluster.UID) {
	if s := l.running[uid]; s != nil {
		s.on.free += need(s.pod)
		delete(l.running, uid)
		return
	}
	for _, j := range l.jobs {
		j.pods = slices.DeleteFunc(j.pods, func(p *cluster.Pod) bool { return p.UID == uid })
	}
	l.jobs = slices.DeleteFunc(l.jobs, func(j *job) bool { return len(j.pods) == 0 })
}

// start places all pods of a job.
func (l *listScheduler) start(j *job) {
	l.jobs = slices.DeleteFunc(l.jobs, func(o *job) bool { return o == j })
	for _, p := range j.pods {
		on := l.nodes[slices.IndexFunc(l.nodes, func(m *machine) bool { return m.free >= need(p) })]
		on.free -= need(p)
		long := lasts(p)
		ends := forever
		if long != forever {
			ends = l.now + long
		}
		l.running[p.UID] = &slot{p, on, ends}
		l.number++
		d := record.Decision{Number: l.number, At: l.now, Pod: p.Ref(), Verdict: record.Placed,
			Winner: &record.Candidate{Node: on.name}}
		l.effects = append(l.effects, engine.Decided{Decision: d},
			engine.Bind{Pod: p.Ref(), Node: on.name, Decision: l.number})
	}
}

// firstByEASY returns the job that starts next by EASY: the first one if it fits, or else the first one behind it that
// fits and does not delay it, because it ends before the first one can start or uses slots that are free besides.
func (l *listScheduler) firstByEASY() *job {
	waiting := l.complete()
	if len(waiting) == 0 {
		return nil
	}
	free, first := l.free(), waiting[0]
	if first.slots() <= free {
		return first
	}
	at, besides := l.shadow(first.slots())
	for _, j := range waiting[1:] {
		inTime := j.lasts() != forever && l.now+j.lasts() <= at
		if n := j.slots(); n <= free && (inTime || n <= besides) {
			return j
		}
	}
	return nil
}

// shadow returns when so many slots are free by the known ends, and how many are free besides at that time; forever and
// what is free now if there will never be enough.
func (l *listScheduler) shadow(slots int) (at record.Time, besides int) {
	free := l.free()
	for _, s := range l.byEnd() {
		if free += need(s.pod); free >= slots && s.ends != forever {
			return s.ends, free - slots
		}
	}
	return forever, l.free()
}

// byEnd returns the running pods, the one that ends first first.
func (l *listScheduler) byEnd() (slots []*slot) {
	for _, s := range l.running { // order: sorted below
		slots = append(slots, s)
	}
	slices.SortFunc(slots, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(a.ends, b.ends), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	return slots
}

// firstByReservations returns the job that starts next by conservative backfill: each job has a reservation, in the
// order of arrival, at the earliest time at which it delays none before it; the first one whose time is now starts.
func (l *listScheduler) firstByReservations() *job {
	taken := l.byEnd() // slots that are taken, and until when
	type reservation struct {
		from, until record.Time
		slots       int
	}
	var reserved []reservation
	freeAt := func(t record.Time) int {
		free := l.free()
		for _, s := range taken {
			if s.ends <= t {
				free += need(s.pod)
			}
		}
		for _, r := range reserved {
			if r.from <= t && t < r.until {
				free -= r.slots
			}
		}
		return free
	}
	for _, j := range l.complete() {
		// A start is possible only now, when a pod ends, or when a reservation does.
		times := []record.Time{l.now}
		for _, s := range taken {
			times = append(times, s.ends)
		}
		for _, r := range reserved {
			times = append(times, r.from, r.until)
		}
		slices.Sort(times)
		for _, t := range times {
			if t < l.now || t == forever {
				continue
			}
			until := forever
			if long := j.lasts(); long != forever {
				until = t + long
			}
			fits := !slices.ContainsFunc(times, func(u record.Time) bool {
				return u >= t && u < until && u != forever && freeAt(u) < j.slots()
			})
			if !fits {
				continue
			}
			if t == l.now {
				return j
			}
			reserved = append(reserved, reservation{t, until, j.slots()})
			break
		}
	}
	return nil
}

// complete returns the jobs of which all pods are there.
func (l *listScheduler) complete() (jobs []*job) {
	for _, j := range l.jobs {
		if len(j.pods) >= j.size {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// free returns how many slots are free.
func (l *listScheduler) free() (n int) {
	for _, m := range l.nodes {
		n += m.free
	}
	return n
}

// slots returns how many slots the job takes.
func (j *job) slots() (n int) {
	for _, p := range j.pods {
		n += need(p)
	}
	return n
}

// lasts returns for how long the job runs.
func (j *job) lasts() (long record.Time) {
	for _, p := range j.pods {
		long = max(long, lasts(p))
	}
	return long
}

// lasts returns for how long a pod runs, forever where that is not known.
func lasts(p *cluster.Pod) record.Time {
	if long, basis := p.Lasts(); basis != cluster.EndUnknown {
		return long
	}
	return forever
}

// need returns how many slots a pod takes.
func need(p *cluster.Pod) int { return int(p.Spec.Request.MilliCPU / 1000) }
