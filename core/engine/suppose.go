// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// supposing is the state of one question. What it does to the store ends with the question, and it searches with caches of
// its own: those of the scheduling loop never see what was only supposed.
type supposing struct {
	e     *Engine
	trial *cluster.Trial
	// placers: schedulerName -> its search, as that profile has it but for strategy and foreign code.
	placers map[string]*place.Placer
	finder  preempt.Finder
	// promised is where pods are expected: the queue's nominations, unless a question sees more.
	promised place.Nominations
	// gone are pods that were waiting, and of which no promise counts any more.
	gone map[cluster.UID]bool
	// left are the pods that were taken from their nodes, as they would wait if they were made again.
	left  []*cluster.Pod
	notes []string
	named map[string]int // name of a node -> how many were added like it
}

// supposed answers a question on a supposition, which is gone when it returns. A panic becomes an error, unless it tells of a
// broken invariant.
func (e *Engine) supposed(about *cluster.Pod, answer func(w *supposing)) (err error) {
	end := func() { e.store.Abort() }
	end = e.store.Suppose().End
	defer func() {
		r := recover()
		if broken, is := r.(cluster.Broken); is {
			panic(broken)
		}
		end()
		if r != nil {
			err = fmt.Errorf("judging %s panicked: %v", about.Key(), r)
		}
	}()
	answer(&supposing{
		e: e, promised: e.queue, finder: e.evictions.Finder().ForQuestion(), trial: e.store.Trial(), placers: map[string]*place.Placer{}, gone: map[cluster.UID]bool{}, named: map[string]int{},
	})
	return nil
}

// placer is the search for the pods of a profile: all nodes are looked at, and nothing but native code is asked.
func (w *supposing) placer(prof *profile) *place.Placer {
	pl := w.placers[prof.Name]
	if pl == nil {
		pl = place.New(place.Profile{Filters: prof.Filters, Scorers: prof.Scorers}, NoMeter{}, w.e.cfg.ClassBytes)
		w.placers[prof.Name] = pl
	}
	return pl
}

// NominatedNodes are the nodes with promises.
func (w *supposing) NominatedNodes() []string { return w.promised.NominatedNodes() }

// NominatedOn leaves out pods that are supposed gone.
func (w *supposing) NominatedOn(node string) []*cluster.Pod {
	pods := w.promised.NominatedOn(node)
	if len(w.gone) == 0 {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), func(p *cluster.Pod) bool { return w.gone[p.UID] })
}

// draw is keyed by what is asked about, so that the same question has the same answer.
func (w *supposing) draw(key string) func(n int) int {
	h := fnv.New64a()
	h.Write([]byte(key))
	return place.Draw(w.e.cfg.Seed, h.Sum64())
}

// suppose makes one condition true.
func (w *supposing) suppose(c *condition) (record.Supposed, *record.Refusal) {
	done := record.Supposed{If: c.String()}
	var why string
	switch {
	case c.kind == "pod":
		why = w.deletePod(c, &done)
	case c.kind == "gang":
		why = w.deleteGang(c, &done)
	default:
		why = w.supposeNode(c, &done)
	}
	if why != "" {
		return done, &record.Refusal{Missing: true, Message: fmt.Sprintf("condition %q: %s", c.String(), why)}
	}
	return done, nil
}

// take takes a pod off its node.
func (w *supposing) take(p *cluster.Pod) {
	w.trial.Evict(p.UID)
	again := *p
	again.NodeName, again.Nominated, again.Terminating, again.Preempted = "", "", false, false
	again.Start, again.Bound, again.Condition = 0, nil, cluster.Condition{}
	w.left = append(w.left, &again)
}

func (w *supposing) deletePod(c *condition, done *record.Supposed) (missing string) {
	if slices.ContainsFunc(w.left, func(l *cluster.Pod) bool { return l.Namespace == c.namespace && l.Name == c.name }) {
		done.Does = "it was supposed gone already"
		return ""
	}
	p := w.e.findPod(c.namespace, c.name)
	s := w.e.store.Snapshot()
	if p == nil {
		return fmt.Sprintf("there is no pod %s/%s that waits or holds room", c.namespace, c.name)
	}
	on, n, _, holds := s.PodOn(p.UID)
	switch {
	case w.gone[p.UID]:
		done.Does = "it was supposed gone already"
	case !holds:
		w.gone[p.UID] = true
		done.Does = "it waits no more; it holds no room"
		if node := w.e.queue.NominationOf(p.UID); node != "" {
			done.Does = "it waits; the room that is kept for it on " + node + " is free"
		}
	case on.OfNode:
		done.Stay = 1
		done.Does = "it belongs to node " + s.NodeName(n) + " and comes back there: nothing changes"
	default:
		done.Leave = 1
		done.Does = "it leaves " + s.NodeName(n) + again(1, b2i(!on.Owned))
		w.take(on)
	}
	return ""
}

// again says for people that pods are made again, or how many are not.
func again(pods, lost int) string {
	switch {
	case lost == 0:
		return ", and comes again: it has a controller"
	case pods == 1:
		return " for good: it has no controller"
	}
	return fmt.Sprintf(", %d of them for good: they have no controller", lost)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *supposing) deleteGang(c *condition, done *record.Supposed) (missing string) {
	key, ok := w.e.findGang(c.namespace, c.name)
	if !ok {
		return fmt.Sprintf("there is no gang %s/%s: no pod of this scheduler's, and no pod group, names it", c.namespace, c.name)
	}
	waiting := 0
	if u := w.e.queue.Gang(key); u != nil {
		for _, p := range u.Members {
			w.gone[p.UID] = true
			waiting++
		}
	}
	lost, nodes := 0, map[cluster.NodeIdx]bool{}
	for _, m := range w.e.store.Snapshot().GangMembers(key) {
		if m.Pod.OfNode {
			done.Stay++
			continue
		}
		done.Leave++
		lost += b2i(!m.Pod.Owned)
		nodes[m.Row] = true
		w.take(m.Pod)
	}
	done.Does = "none of its pods holds room"
	if done.Leave > 0 {
		done.Does = fmt.Sprintf("%s %s", pods(done.Leave, "leaves", "leave"), counted(len(nodes), "node"))
		if lost > 0 {
			done.Does += again(done.Leave, lost)
		}
	}
	if waiting > 0 {
		done.Does += fmt.Sprintf("; %s no more", pods(waiting, "waits", "wait"))
	}
	return ""
}

// pods is a number of pods with its verb.
func pods(n int, one, many string) string {
	switch n {
	case 0:
		return "no pod " + one
	case 1:
		return "1 pod " + one
	}
	return fmt.Sprintf("%d pods %s", n, many)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (w *supposing) supposeNode(c *condition, done *record.Supposed) (missing string) {
	s := w.e.store.Snapshot()
	n, ok := s.Find(c.name)
	if !ok {
		return "there is no node " + c.name
	}
	node := *s.Node(n)
	switch c.verb {
	case "drain":
		w.empty(n, done, false)
		node.Unschedulable = true
		w.e.store.SetNode(&node)
		done.Does += "; the node takes no pods"
	case "delete":
		w.empty(n, done, true)
		w.e.store.DeleteNode(c.name)
		done.Does = "the node is gone; " + done.Does
	case "cordon":
		done.Does = "the node takes no pods"
		if node.Unschedulable {
			done.Does = "the node was cordoned already"
		}
		node.Unschedulable = true
		w.e.store.SetNode(&node)
	case "uncordon":
		done.Does = "the node takes pods"
		if !node.Unschedulable {
			done.Does = "the node was not cordoned"
		}
		node.Unschedulable = false
		node.Taints = slices.DeleteFunc(slices.Clone(node.Taints), func(t v1.Taint) bool { return t.Key == v1.TaintNodeUnschedulable })
		w.e.store.SetNode(&node)
	default:
		w.addNodes(s, n, c.count, done)
	}
	return ""
}

// empty takes the pods off a node: all of them, or those that do not belong to it.
func (w *supposing) empty(n cluster.NodeIdx, done *record.Supposed, all bool) {
	s := w.e.store.Snapshot()
	var leave []*cluster.Pod
	lost := 0
	s.EachPod(n, func(p *cluster.Pod, _ bool) {
		if p.OfNode && !all {
			done.Stay++
			return
		}
		leave = append(leave, p)
		lost += b2i(!p.Owned && !p.OfNode)
	})
	slices.SortFunc(leave, func(a, b *cluster.Pod) int { return cmp.Or(cmp.Compare(a.Key(), b.Key()), cmp.Compare(a.UID, b.UID)) })
	shielded := preempt.Shielded(s, leave)
	for _, p := range leave {
		w.take(p)
	}
	if all { // with their node, its own pods are gone for good
		w.left = slices.DeleteFunc(w.left, func(p *cluster.Pod) bool { return p.OfNode })
	}
	done.Leave = len(leave)
	done.Does = pods(len(leave), "leaves", "leave")
	if lost > 0 {
		done.Does += again(len(leave), lost)
	}
	if done.Stay > 0 {
		done.Does += fmt.Sprintf(", %d %s to the node (DaemonSet, static)", done.Stay, verb(done.Stay, "belongs", "belong"))
	}
	if shielded > 0 && !all {
		done.Does += fmt.Sprintf("; disruption budgets hold up %d of them", shielded)
	}
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// addedNodesNamed is how many added nodes are named.
const addedNodesNamed = 3

// addNodes adds nodes that are like one: with its labels but for the host name, its taints but for those that tell of its
// state, what it offers, what its volume drivers can attach, and the pods that come with a node.
func (w *supposing) addNodes(s cluster.Snapshot, like cluster.NodeIdx, count int, done *record.Supposed) {
	model := s.Node(like)
	var own []*cluster.Pod
	s.EachPod(like, func(p *cluster.Pod, _ bool) {
		if p.OfNode && !p.Terminating {
			own = append(own, p)
		}
	})
	csi, hasCSI := cluster.FindAPI[*storagev1.CSINode](s, "", model.Name)
	for range count {
		node := w.nodeLike(s, model)
		w.e.store.SetNode(node)
		if hasCSI {
			drivers := *csi
			drivers.Name, drivers.UID, drivers.ResourceVersion = node.Name, "", ""
			w.e.store.SetObject(&drivers)
		}
		for _, p := range own {
			copied := *p
			copied.UID = cluster.UID(node.Name + "/" + string(p.UID))
			copied.Name, copied.NodeName = p.Name+"-"+node.Name, node.Name
			w.e.store.SetPod(&copied)
		}
		if len(done.Nodes) < addedNodesNamed {
			done.Nodes = append(done.Nodes, node.Name)
		}
	}
	done.Added = count
	done.Does = strings.Join(done.Nodes, ", ")
	if more := count - len(done.Nodes); more > 0 {
		done.Does += fmt.Sprintf(" and %d more", more)
	}
	if len(own) > 0 {
		done.Does += fmt.Sprintf(", with %s that %s to a node (DaemonSet, static)", counted(len(own), "pod"), verb(len(own), "belongs", "belong"))
	}
	cluster.Each(s, func(slice *resourceapi.ResourceSlice) bool {
		if has := slice.Spec.NodeName != nil && *slice.Spec.NodeName == model.Name; has {
			w.note("the added nodes have no devices of drivers: those of " + model.Name + " are not copied")
			return false
		}
		return true
	})
}

func (w *supposing) note(text string) {
	if !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}

// nodeLike is a new node that is like model, in good order, and has no images yet.
func (w *supposing) nodeLike(s cluster.Snapshot, model *cluster.Node) *cluster.Node {
	node := *model
	for taken := true; taken; {
		w.named[model.Name]++
		node.Name = fmt.Sprintf("%s-if-%d", model.Name, w.named[model.Name])
		_, taken = s.Find(node.Name)
	}
	node.UID, node.Unschedulable, node.Images = node.Name, false, nil
	node.Labels = make(map[string]string, len(model.Labels))
	for k, v := range model.Labels { // order: a map is made of a map
		node.Labels[k] = v
	}
	if _, has := node.Labels[v1.LabelHostname]; has {
		node.Labels[v1.LabelHostname] = node.Name
	}
	node.Taints = slices.DeleteFunc(slices.Clone(model.Taints), func(t v1.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
	return &node
}
