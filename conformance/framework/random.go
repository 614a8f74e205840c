// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Calls counts the calls of plugins: plugin, point, pod and node -> calls.
type Calls map[string]int

// at lists the calls at a point.
func (c Calls) at(point string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if strings.Contains(key, " "+point+" ") {
			list = append(list, fmt.Sprint(key, c[key]))
		}
	}
	return fmt.Sprint(list)
}

// Random is a plugin whose answers are drawn.
type Random struct {
	name   string
	seed   uint64
	calls  func() Calls // where calls are counted; nil for nowhere
	handle fwk.Handle
}

// Factory returns the factory of a Random, for both schedulers.
func Factory(name string, seed uint64,
	calls func() Calls) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		return &Random{name, seed, calls, h}, nil
	}
}

// Name returns the name in profiles.
func (r *Random) Name() string { return r.name }

// draw returns a number below n.
func (r *Random) draw(n uint64, point string, about ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, r.seed, r.name, point, about)
	x := h.Sum64()
	x ^= x >> 31
	return x * 0x9e3779b97f4a7c15 >> 20 % n
}

func (r *Random) count(point, pod, node string) {
	if c := r.calls(); c != nil {
		c[fmt.Sprint(r.name, " ", point, " ", pod, " ", node)]++
	}
}

// sum is data in a CycleState.
type sum struct{ n int64 }

// Clone copies the data.
func (s *sum) Clone() fwk.StateData { return &sum{s.n} }

// shared is the key that all Randoms write, so that the order of calls matters.
const shared fwk.StateKey = "Random"

// add adds to the shared sum and returns it.
func add(state fwk.CycleState, n int64) int64 {
	data, err := state.Read(shared)
	if err != nil {
		data = &sum{}
		state.Write(shared, data)
	}
	data.(*sum).n += n
	return data.(*sum).n
}

// PreEnqueue keeps a few pods out of the queue.
func (r *Random) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	if r.draw(100, "PreEnqueue", pod.Name) < 2 {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, r.name+" gates the pod")
	}
	return nil
}

// EventsToRegister registers nothing.
func (r *Random) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// PreFilter draws each status, and subsets of the nodes.
func (r *Random) PreFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	r.count("PreFilter", pod.Name, "")
	before := add(state, int64(r.draw(1000, "adds", pod.Name)))
	switch n := r.draw(100, "PreFilter", pod.Name, len(nodes), before); {
	case n < 35:
		return nil, fwk.NewStatus(fwk.Skip)
	case n < 39:
		return nil, fwk.NewStatus(fwk.Unschedulable, r.name+" has no place now")
	case n < 42:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, r.name+" has no place, nor will have one")
	case n < 43:
		return nil, fwk.AsStatus(errors.New("PreFilter fails"))
	case n < 44:
		return nil, fwk.NewStatus(fwk.Pending, "PreFilter must not wait")
	case n < 52:
		return r.some(pod, nodes), nil
	}
	return nil, nil
}

// some returns a subset of the nodes, and a node that does not exist.
func (r *Random) some(pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.PreFilterResult {
	result := &fwk.PreFilterResult{NodeNames: sets.New("no-such-node")}
	for _, n := range nodes {
		if r.draw(4, "subset", pod.Name, n.Node().Name) > 0 {
			result.NodeNames.Insert(n.Node().Name)
		}
	}
	return result
}

// PreFilterExtensions returns the plugin for half of the Randoms.
func (r *Random) PreFilterExtensions() fwk.PreFilterExtensions {
	if r.draw(2, "extensions") == 0 {
		return nil
	}
	return r
}

// AddPod adds to the shared sum, by the pod and the node.
func (r *Random) AddPod(_ context.Context, state fwk.CycleState, pod *v1.Pod, added fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	r.count("AddPod", pod.Name, node.Node().Name)
	add(state, int64(r.draw(1000, "AddPod", added.GetPod().Name, added.GetPod().Spec.NodeName, len(node.GetPods()))))
	return nil
}

// RemovePod adds to the shared sum too: only a copy of the state restores it.
func (r *Random) RemovePod(_ context.Context, state fwk.CycleState, pod *v1.Pod, removed fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	add(state, int64(r.draw(1000, "RemovePod", removed.GetPod().Name, len(node.GetPods()))))
	return nil
}

// counting is the annotation of pods for which Filter draws by its calls for the node before. On a node with nominated
// pods of lower priority alone, upstream drops what Filter writes, and kumiki does not, so there are none then.
const counting = "counting"

// filtered counts a call of Filter for a node in the CycleState, and returns the calls before. Each plugin and node has
// a key, because upstream evaluates nodes in parallel.
func (r *Random) filtered(state fwk.CycleState, node string) int64 {
	key := fwk.StateKey(r.name + " on " + node)
	data, err := state.Read(key)
	if err != nil {
		state.Write(key, &sum{1})
		return 0
	}
	before := data.(*sum).n
	data.(*sum).n++
	return before
}

// Filter draws each status, by all that it sees.
func (r *Random) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	r.count("Filter", pod.Name, node.Node().Name)
	before := int64(0)
	if pod.Annotations[counting] != "" {
		before = r.filtered(state, node.Node().Name)
	}
	switch n := r.draw(1000, "Filter", pod.Name, node.Node().Name, seen(node, false), add(state, 0), before); {
	case n < 100:
		return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("%s finds the node busy %d", r.name, n%3))
	case n < 160:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, r.name+" finds the node unfit", "always")
	case n < 190:
		return fwk.NewStatus(fwk.Pending, r.name+" waits for the node")
	case n == 999 && r.draw(10, "fails", pod.Name) == 0:
		return fwk.AsStatus(errors.New("Filter fails"))
	}
	return nil
}

// PostFilter draws each status and each kind of nomination, by the statuses of all nodes.
func (r *Random) PostFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod,
	statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	r.count("PostFilter", pod.Name, "")
	if len(statuses.Get("no-such-node").Reasons()) == 0 { // all plugins have prepared the pod
		r.dryRuns(state, pod)
	}
	n := r.draw(100, "PostFilter", pod.Name, r.statuses(statuses), add(state, 0))
	var result *fwk.PostFilterResult
	switch r.draw(4, "nominates", pod.Name) {
	case 0:
		result = &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride,
			NominatedNodeName: fmt.Sprint("node-", n)}}
	case 1:
		result = &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride}}
	case 2:
		result = &fwk.PostFilterResult{}
	}
	switch {
	case n < 15:
		return result, nil
	case n < 25:
		return result, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, r.name+" knows that no one can help")
	case n < 33:
		return result, fwk.AsStatus(errors.New(r.name + " cannot help now"))
	case n < 40:
		return result, fwk.NewStatus(fwk.Pending, r.name+" waits for help")
	case n < 45:
		return result, fwk.NewStatus(fwk.Unschedulable)
	}
	return result, fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("%s does not help %d", r.name, n%5), "nor later")
}

// dryRunNodes is on how many nodes a plugin makes dry runs.
const dryRunNodes = 6

// dryRuns asks the Handle whether the pod would fit without the first two pods of a node, and counts the answers as
// calls, so that they are compared.
func (r *Random) dryRuns(state fwk.CycleState, pod *v1.Pod) {
	ctx := context.Background()
	nodes, _ := r.handle.SnapshotSharedLister().NodeInfos().List()
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b fwk.NodeInfo) int { return strings.Compare(a.Node().Name, b.Node().Name) })
	for _, n := range nodes[:min(dryRunNodes, len(nodes))] {
		without, dry := n.Snapshot(), state.Clone()
		pods := slices.Clone(n.GetPods())
		slices.SortFunc(pods, func(a, b fwk.PodInfo) int { return strings.Compare(a.GetPod().Name, b.GetPod().Name) })
		text := ""
		for _, gone := range pods[:min(2, len(pods))] {
			if err := without.RemovePod(klog.Background(), gone.GetPod()); err != nil {
				text += err.Error()
			}
			status := r.handle.RunPreFilterExtensionRemovePod(ctx, dry, pod, gone, without)
			text += fmt.Sprint("-", gone.GetPod().Name, status.Code())
		}
		for _, now := range []fwk.NodeInfo{without, n} {
			status := r.handle.RunFilterPluginsWithNominatedPods(ctx, dry, pod, now)
			if now == n {
				status = r.handle.RunFilterPlugins(ctx, state.Clone(), pod, now)
			}
			text += fmt.Sprint(" ", status.Code())
			if status != nil {
				reasons := slices.Clone(status.Reasons())
				slices.Sort(reasons)
				text += fmt.Sprint(status.Plugin(), reasons)
			}
		}
		r.count("DryRun", pod.Name, n.Node().Name+text)
	}
	r.count("DryRun", pod.Name, r.scoreAll(state.Clone(), pod, nodes[:min(dryRunNodes, len(nodes))]))
}

// scoreAll lists what the Handle's plugins score: of each node the plugins that say something, and the total. When one
// fails, which one depends on the order.
func (r *Random) scoreAll(state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) string {
	if !r.handle.RunPreScorePlugins(context.Background(), state, pod, nodes).IsSuccess() {
		return "PreScore fails"
	}
	scores, status := r.handle.RunScorePlugins(context.Background(), state, pod, nodes)
	if !status.IsSuccess() {
		return "Score fails"
	}
	text := ""
	for _, n := range scores {
		text += fmt.Sprint(" ", n.Name)
		for i, raw := range n.RawScores {
			if raw.Name == "VolumeBinding" { // upstream knows only the nodes that its Filter has accepted
				n.TotalScore -= n.Scores[i].Score
				continue
			}
			if raw.Score != 0 || n.Scores[i].Score != 0 {
				text += fmt.Sprint(" ", raw.Name, raw.Score, "/", n.Scores[i].Score)
			}
		}
		text += fmt.Sprint(" ", n.TotalScore)
	}
	return text
}

// statuses lists what a plugin sees of the nodes.
func (r *Random) statuses(of fwk.NodeToStatusReader) string {
	nodes := r.handle.SnapshotSharedLister().NodeInfos()
	all, _ := nodes.List()
	var list []string
	for _, n := range append(all[:len(all):len(all)], nil) {
		name := "no-such-node"
		if n != nil {
			name = n.Node().Name
		}
		status := of.Get(name)
		reasons := slices.Clone(status.Reasons())
		slices.Sort(reasons)
		list = append(list, fmt.Sprint(name, status.Code(), status.Plugin(), reasons))
	}
	helped, _ := of.NodesForStatusCode(nodes, fwk.Unschedulable)
	slices.Sort(list)
	return fmt.Sprint(list, len(helped))
}

// PreScore draws Skip, errors, and what it adds to the shared sum.
func (r *Random) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	r.count("PreScore", pod.Name, "")
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Node().Name
	}
	slices.Sort(names)
	before := add(state, int64(r.draw(1000, "PreScore adds", pod.Name, names)))
	switch n := r.draw(100, "PreScore", pod.Name, before); {
	case n < 30:
		return fwk.NewStatus(fwk.Skip)
	case n < 32:
		return fwk.AsStatus(errors.New("PreScore fails"))
	}
	return nil
}

// Score draws a score by all that it sees; rarely it fails, or is out of range.
func (r *Random) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	r.count("Score", pod.Name, node.Node().Name)
	if r.draw(2000, "Score fails", pod.Name, node.Node().Name) == 0 {
		return 0, fwk.AsStatus(errors.New("Score fails"))
	}
	score := int64(r.draw(101, "Score", pod.Name, node.Node().Name, seen(node, true), add(state, 0)))
	if r.ScoreExtensions() != nil {
		return 1000 * score, nil
	}
	if r.draw(2000, "range", pod.Name, node.Node().Name) == 0 {
		return score + 101, nil
	}
	return score, nil
}

// ScoreExtensions returns the plugin for half of the Randoms.
func (r *Random) ScoreExtensions() fwk.ScoreExtensions {
	if r.draw(2, "normalizes") == 0 {
		return nil
	}
	return r
}

// NormalizeScore brings scores to the range.
func (r *Random) NormalizeScore(_ context.Context, _ fwk.CycleState, pod *v1.Pod,
	scores fwk.NodeScoreList) *fwk.Status {
	r.count("NormalizeScore", pod.Name, "")
	if r.draw(300, "Normalize fails", pod.Name) == 0 {
		return fwk.AsStatus(errors.New("NormalizeScore fails"))
	}
	for i := range scores {
		scores[i].Score /= 1000
	}
	return nil
}

// seen lists what a NodeInfo shows. Upstream keeps ports as a set and scalars without an amount, so it lists neither
// how often a port is used nor scalars of 0. The copies that upstream makes to add nominated pods have 0 as the number
// of nodes with an image, so it lists that only if asked to.
func seen(n fwk.NodeInfo, spread bool) string {
	var pods []string
	for _, p := range n.GetPods() {
		pod := p.GetPod()
		pods = append(pods, fmt.Sprint(pod.Namespace, "/", pod.Name, " on ", pod.Spec.NodeName,
			len(p.GetRequiredAffinityTerms()), len(p.GetRequiredAntiAffinityTerms()), len(p.GetPreferredAffinityTerms()),
			len(p.GetPreferredAntiAffinityTerms())))
	}
	slices.Sort(pods)
	var ports []string
	for ip, taken := range n.GetUsedPorts() {
		for port := range taken {
			ports = append(ports, fmt.Sprint(ip, port))
		}
	}
	slices.Sort(ports)
	var images []string
	for name, image := range n.GetImageStates() {
		nodes := 0
		if spread {
			nodes = image.NumNodes
		}
		images = append(images, fmt.Sprint(name, image.Size, nodes))
	}
	slices.Sort(images)
	claims := n.GetPVCRefCounts()
	var used []string
	for _, key := range slices.Sorted(maps.Keys(claims)) {
		used = append(used, fmt.Sprint(key, claims[key]))
	}
	return fmt.Sprint(pods, ports, images, used, amounts(n.GetRequested()), amounts(n.GetNonZeroRequested()),
		amounts(n.GetAllocatable()), len(n.GetPodsWithAffinity()), len(n.GetPodsWithRequiredAntiAffinity()),
		n.Node().Labels, n.Node().Spec.Taints)
}

func amounts(r fwk.Resource) string {
	scalars := r.GetScalarResources()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(scalars)) {
		if scalars[name] != 0 {
			list = append(list, fmt.Sprint(name, scalars[name]))
		}
	}
	return fmt.Sprint(r.GetMilliCPU(), r.GetMemory(), r.GetEphemeralStorage(), r.GetAllowedPodNumber(), list)
}
