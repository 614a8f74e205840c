// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// objectKey names a pod, or a node when the namespace is empty.
type objectKey struct{ namespace, name string }

func compareKeys(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// row is one object: what the API server said last and what the engine was told last.
type row[R any] struct {
	newest *R // nil: gone
	told   *R // nil: the engine does not know it
	queued bool
}

// Inbox holds the newest compact record of every pod and node, and tells the engine what it does not know yet. Any
// goroutine may write to it; the loop alone takes from it.
type Inbox struct {
	// intakeMu guards the intake, apart from mu so that the loop never waits for a conversion.
	intakeMu   sync.Mutex
	intake     *cluster.Intake
	namespaces map[string]string // namespace -> the one copy of the string that records share

	mu    sync.Mutex
	pods  map[objectKey]row[cluster.Pod]  // namespace, name -> versions
	nodes map[objectKey]row[cluster.Node] // "", name -> versions
	queue []objectKey                     // keys with queued set, oldest first; taken from head
	head  int
	// podsListed and nodesListed become true with the first full list. Until both are, nothing is taken.
	podsListed, nodesListed bool
	toldNodes, toldBound    int // nodes and bound pods that the engine knows
	// behind is set from the start of a list until all it brought has been taken.
	behind     bool
	opened     bool // the initial lists were sorted into the queue
	syncedTold bool // Synced was taken

	ready chan struct{} // one slot: something may be taken
	// trouble is told of objects that could not be converted.
	trouble func(object string, problem any)
}

// NewInbox returns an empty Inbox. trouble is called, from any goroutine, for each object whose conversion panicked;
// the object's version before stays.
func NewInbox(trouble func(object string, problem any)) *Inbox {
	return &Inbox{
		intake:     cluster.NewIntake(),
		namespaces: map[string]string{},
		pods:       map[objectKey]row[cluster.Pod]{},
		nodes:      map[objectKey]row[cluster.Node]{},
		behind:     true,
		ready:      make(chan struct{}, 1),
		trouble:    trouble,
	}
}

// convertPod makes the compact record, nil when the object broke the intake.
func (in *Inbox) convertPod(p *v1.Pod) (rec *cluster.Pod) {
	defer func() {
		if problem := recover(); problem != nil {
			in.trouble("pod "+p.Namespace+"/"+p.Name, problem)
			rec = nil
		}
	}()
	in.intakeMu.Lock()
	defer in.intakeMu.Unlock()
	rec = in.intake.Pod(p)
	if shared, known := in.namespaces[rec.Namespace]; known {
		rec.Namespace = shared
	} else {
		in.namespaces[rec.Namespace] = rec.Namespace
	}
	return rec
}

func (in *Inbox) convertNode(n *v1.Node) (rec *cluster.Node) {
	defer func() {
		if problem := recover(); problem != nil {
			in.trouble("node "+n.Name, problem)
			rec = nil
		}
	}()
	in.intakeMu.Lock()
	defer in.intakeMu.Unlock()
	return in.intake.Node(n)
}

// samePod tells whether the engine would learn nothing from b. The resource version counts only while the pod pends:
// then it is the precondition of status patches.
func samePod(a, b *cluster.Pod) bool {
	if a == nil || b == nil {
		return a == b
	}
	x := *a
	if a.NodeName != "" {
		x.ResourceVersion = b.ResourceVersion
	}
	return x == *b
}

func (in *Inbox) setPod(rec *cluster.Pod) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.setPodLocked(rec)
}

func (in *Inbox) setPodLocked(rec *cluster.Pod) {
	key := objectKey{rec.Namespace, rec.Name}
	r := in.pods[key]
	if samePod(r.newest, rec) {
		return
	}
	if node, known := in.nodes[objectKey{name: rec.NodeName}]; known && node.newest != nil {
		rec.NodeName = node.newest.Name // one copy of the string for all pods of a node
	}
	r.newest = rec
	in.enqueue(key, &r.queued)
	in.pods[key] = r
}

func (in *Inbox) goPod(key objectKey) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.goPodLocked(key)
}

func (in *Inbox) goPodLocked(key objectKey) {
	r, known := in.pods[key]
	if !known || r.newest == nil {
		return
	}
	r.newest = nil
	in.enqueue(key, &r.queued)
	in.pods[key] = r
}

func (in *Inbox) setNode(rec *cluster.Node) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.setNodeLocked(rec)
}

func (in *Inbox) setNodeLocked(rec *cluster.Node) {
	key := objectKey{name: rec.Name}
	r := in.nodes[key]
	if r.newest != nil && reflect.DeepEqual(r.newest, rec) {
		return
	}
	r.newest = rec
	in.enqueue(key, &r.queued)
	in.nodes[key] = r
}

func (in *Inbox) goNode(key objectKey) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.goNodeLocked(key)
}

func (in *Inbox) goNodeLocked(key objectKey) {
	r, known := in.nodes[key]
	if !known || r.newest == nil {
		return
	}
	r.newest = nil
	in.enqueue(key, &r.queued)
	in.nodes[key] = r
}

// replacePods makes the pods exactly these: what is missing is gone. kept are keys that were listed without a new
// version.
func (in *Inbox) replacePods(recs []*cluster.Pod, kept []objectKey) {
	slices.SortFunc(recs, func(a, b *cluster.Pod) int {
		return compareKeys(objectKey{a.Namespace, a.Name}, objectKey{b.Namespace, b.Name})
	})
	listed := make(map[objectKey]bool, len(recs)+len(kept)) // key -> it was listed
	for _, rec := range recs {
		listed[objectKey{rec.Namespace, rec.Name}] = true
	}
	for _, key := range kept {
		listed[key] = true
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, key := range missing(in.pods, listed) {
		in.goPodLocked(key)
	}
	for _, rec := range recs {
		in.setPodLocked(rec)
	}
	in.podsListed = true
	in.signal()
}

// replaceNodes makes the nodes exactly these.
func (in *Inbox) replaceNodes(recs []*cluster.Node, kept []objectKey) {
	slices.SortFunc(recs, func(a, b *cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	listed := make(map[objectKey]bool, len(recs)+len(kept)) // key -> it was listed
	for _, rec := range recs {
		listed[objectKey{name: rec.Name}] = true
	}
	for _, key := range kept {
		listed[key] = true
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, key := range missing(in.nodes, listed) {
		in.goNodeLocked(key)
	}
	for _, rec := range recs {
		in.setNodeLocked(rec)
	}
	in.nodesListed = true
	in.signal()
}

// missing lists the keys that exist and were not listed, sorted so that they go in one order.
func missing[R any](rows map[objectKey]row[R], listed map[objectKey]bool) []objectKey {
	var keys []objectKey
	for key, r := range rows {
		if r.newest != nil && !listed[key] {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// enqueue puts the key at the end of the queue once.
func (in *Inbox) enqueue(key objectKey, queued *bool) {
	if !*queued {
		*queued = true
		in.queue = append(in.queue, key)
	}
	in.signal()
}

func (in *Inbox) signal() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

// Pod returns the newest record of a pod, nil when there is none of this UID.
func (in *Inbox) Pod(ref record.PodRef) *cluster.Pod {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.pods[objectKey{ref.Namespace, ref.Name}].newest
	if p == nil || string(p.UID) != ref.UID {
		return nil
	}
	return p
}

// Told counts the nodes and the bound pods that the engine knows.
func (in *Inbox) Told() (nodes, bound int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.toldNodes, in.toldBound
}

func bound(p *cluster.Pod) int {
	if p == nil || p.NodeName == "" {
		return 0
	}
	return 1
}

// awaitLists holds everything back until both lists have come afresh.
func (in *Inbox) awaitLists() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.podsListed, in.nodesListed, in.behind = false, false, true
}

// Behind tells that lists are awaited or that what they brought is not all taken: no time to decide.
func (in *Inbox) Behind() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.behind
}

// Take appends to into what the engine must be told next, of at most limit objects, and returns it with how many
// objects were taken. The first objects are the nodes and then the pods of the initial lists, sorted by name, and after
// the last of them comes Synced.
func (in *Inbox) Take(into []engine.Event, limit int) ([]engine.Event, int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.podsListed || !in.nodesListed {
		return into, 0
	}
	if !in.opened {
		slices.SortFunc(in.queue, compareKeys) // nodes have no namespace, so they come first
		in.opened = true
	}
	taken := 0
	for ; taken < limit && in.head < len(in.queue); taken++ {
		key := in.queue[in.head]
		in.queue[in.head] = objectKey{}
		in.head++
		if key.namespace == "" {
			into = in.tellNode(into, key)
		} else {
			into = in.tellPod(into, key)
		}
	}
	if in.head == len(in.queue) {
		in.queue, in.head = in.queue[:0], 0
		in.behind = false
		if !in.syncedTold {
			in.syncedTold = true
			into = append(into, engine.Synced{})
		}
	} else if in.head > 1024 && in.head > len(in.queue)/2 {
		in.queue = slices.Delete(in.queue, 0, in.head)
		in.head = 0
	}
	return into, taken
}

func (in *Inbox) tellPod(into []engine.Event, key objectKey) []engine.Event {
	r := in.pods[key]
	in.toldBound -= bound(r.told)
	if r.told != nil && (r.newest == nil || r.newest.UID != r.told.UID) {
		into = append(into, engine.PodGone{Pod: r.told.Ref()})
	}
	if r.newest == nil {
		delete(in.pods, key)
		return into
	}
	in.toldBound += bound(r.newest)
	into = append(into, engine.PodSet{Pod: r.newest})
	in.pods[key] = row[cluster.Pod]{newest: r.newest, told: r.newest}
	return into
}

func (in *Inbox) tellNode(into []engine.Event, key objectKey) []engine.Event {
	r := in.nodes[key]
	if r.told != nil {
		in.toldNodes--
		if r.newest == nil || r.newest.UID != r.told.UID {
			into = append(into, engine.NodeGone{Name: key.name})
		}
	}
	if r.newest == nil {
		delete(in.nodes, key)
		return into
	}
	in.toldNodes++
	into = append(into, engine.NodeSet{Node: r.newest})
	in.nodes[key] = row[cluster.Node]{newest: r.newest, told: r.newest}
	return into
}
