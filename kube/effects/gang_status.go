// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/gangapi"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

const (
	// gangsInFlight bounds the statuses of gangs under way: few, because binds matter more.
	gangsInFlight = 4
	// gangTries is how often a status is sent in a row before those of other gangs go first.
	gangTries = 6
)

// GangWriter writes how gangs stand into the objects that declare them. Of several statuses of one gang the newest is
// written; one that the API server has already is not. They have workers and a connection of their own, and are fenced
// as binds are: without the lease none is begun, one on its way ends with it, and none is begun in a pause.
//
// Each write has the object's UID and resourceVersion as preconditions. After a conflict the object is read again.
type GangWriter struct {
	*workerPool[engine.GangStatus]
	objects dynamic.Interface                   // nil where no objects declare gangs
	newest  func(cluster.GangKey) *cluster.Gang // from the watch; nil when the object is gone
	// version returns the version in which the objects of an API are read.
	version func(cluster.GangSource) string

	mu sync.Mutex // also of what join does in several steps
	// whole are the APIs whose status is part of the object and no resource of its own, as far as is known.
	whole map[cluster.GangSource]bool
}

// NewGangWriter returns a GangWriter. Calls end when ctx does.
func NewGangWriter(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface,
	newest func(cluster.GangKey) *cluster.Gang, version func(cluster.GangSource) string,
	metrics *metrics.Metrics) *GangWriter {
	w := &GangWriter{workerPool: newWorkerPool[engine.GangStatus](ctx, client, metrics, "gangStatus", gangsInFlight),
		objects: objects, newest: newest, version: version, whole: map[cluster.GangSource]bool{}}
	w.do = w.carryOut
	return w
}

// gangLane keeps the statuses of one object apart from all others.
func gangLane(s engine.GangStatus) string {
	return string(s.Gang.Source) + "/" + s.Gang.String() + "/" + string(s.UID)
}

// Set wishes for a status. It takes the place of one that was not begun; what that one had reached stays reached.
func (w *GangWriter) Set(s engine.GangStatus) {
	w.join(s, func(was engine.GangStatus) engine.GangStatus { return reached(s, was) })
}

// giveWay puts a status that could not be written behind those of other gangs. A newer one of the gang takes its place.
func (w *GangWriter) giveWay(s engine.GangStatus) {
	w.join(s, func(newer engine.GangStatus) engine.GangStatus { return reached(newer, s) })
}

// join asks for a status, or, when one of the gang waits already, for both of them in one, at the end of the line.
func (w *GangWriter) join(s engine.GangStatus, with func(waiting engine.GangStatus) engine.GangStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lane := gangLane(s)
	w.takeBack(lane, func(waiting engine.GangStatus) bool {
		s = with(waiting)
		return true
	})
	w.add(lane, s)
}

// reached is a status after one before it: an admission stays, and a gang that had its place.
func reached(s, was engine.GangStatus) engine.GangStatus {
	s.Admitted = s.Admitted || was.Admitted
	if was.Scheduled && !s.Scheduled {
		s.Scheduled, s.Reason, s.Message = true, "", ""
	}
	return s
}

// Drain drops the statuses that were not begun, which the next leader writes, and waits for those under way until
// patience ends.
func (w *GangWriter) Drain(patience context.Context) { w.drain(patience) }

// carryOut writes a status. One that cannot be written goes behind those of other gangs, unless a newer one waits.
func (w *GangWriter) carryOut(s engine.GangStatus) {
	wait := w.patience
	fresh := false // read the object, as the watch lags behind it
	for try := 1; ; try++ {
		if !w.awaitLease() {
			return
		}
		result, err := w.write(s, fresh)
		switch {
		case err == nil:
			w.metrics.GangStatuses.WithLabelValues(string(s.Gang.Source), result).Inc()
			return
		case w.ctx.Err() != nil:
			return
		case refusal(err) == refused:
			klog.FromContext(w.ctx).Error(err, "Status of a gang refused", "gang", s.Gang.String(),
				"source", s.Gang.Source)
			w.metrics.GangStatuses.WithLabelValues(string(s.Gang.Source), "refused").Inc()
			return
		}
		fresh = fresh || apierrors.IsConflict(err)
		if try >= gangTries || w.waits(gangLane(s)) {
			w.giveWay(s)
			return
		}
		klog.FromContext(w.ctx).V(2).Info("Status of a gang is tried again", "gang", s.Gang.String(),
			"try", try, "err", err)
		if !call.Sleep(w.ctx, wait) {
			return
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// The results of a write, by which they are counted.
const (
	gangWritten  = "written"
	gangEqual    = "equal" // the API server has it, or is further
	gangObsolete = "moot"  // the object is gone, or another one
)

// write sends a status once.
func (w *GangWriter) write(s engine.GangStatus, fresh bool) (result string, err error) {
	for _, api := range gangapi.APIs {
		if api.Source != s.Gang.Source {
			continue
		}
		version := w.version(api.Source)
		objects := w.objects.Resource(api.Resource.WithVersion(version)).Namespace(s.Gang.Namespace)
		if api.Status == nil {
			result, err = w.writeGroup(s, fresh, objects, gangapi.ScheduledCondition(version))
		} else {
			result, err = w.writeObject(s, api, objects)
		}
		if result == gangObsolete && w.version(api.Source) != version {
			return "", fmt.Errorf("writing the status of %s %s: %w", api.WatchName(), s.Gang, errOtherVersion)
		}
		return result, err
	}
	panic(fmt.Sprintf("kube: a status for gang %s, which %s declares without an object", s.Gang, s.Gang.Source))
}

// writeGroup sends the condition of a native pod group, on top of what the watch says.
func (w *GangWriter) writeGroup(s engine.GangStatus, fresh bool, groups dynamic.ResourceInterface,
	conditionType string) (string, error) {
	have := w.newest(s.Gang)
	if fresh {
		ctx, cancel := context.WithTimeout(w.ctx, call.RereadTimeout)
		defer cancel()
		got, err := groups.Get(ctx, s.Gang.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return gangObsolete, nil
		} else if err != nil {
			return "", fmt.Errorf("reading pod group %s: %w", s.Gang, err)
		}
		have = gangapi.PodGroup(got)
	}
	if have == nil || have.UID != types.UID(s.UID) {
		return gangObsolete, nil
	}
	// A group that was placed once is never shown as waiting again (upstream: updatePodGroupCondition).
	was := have.Condition
	want := cluster.GangCondition{Scheduled: s.Scheduled, Reason: s.Reason, Message: gangapi.CutMessage(s.Message),
		Generation: was.Generation}
	if want.Scheduled {
		want.Reason, want.Message = "Scheduled", ""
	}
	if was == want || was.Scheduled || want.Reason == "" {
		return gangEqual, nil
	}
	body, err := json.Marshal(map[string]any{
		"metadata": unchangedSince(have),
		"status":   map[string]any{"conditions": []any{groupCondition(conditionType, was, want, s.Generation)}},
	})
	if err != nil {
		panic(fmt.Sprintf("kube: condition of pod group %s: %v", s.Gang, err)) // plain data always marshals
	}
	ctx, cancel := w.writing(call.Timeout)
	defer cancel()
	_, err = groups.Patch(ctx, s.Gang.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return gangObsolete, nil
	} else if err != nil {
		return "", fmt.Errorf("writing the status of pod group %s: %w", s.Gang, err)
	}
	return gangWritten, nil
}

// unchangedSince is the precondition of a patch that the object is as it was read.
func unchangedSince(o metav1.Object) map[string]any {
	return map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()}
}

// groupCondition is the condition in a strategic merge patch; the list merges by type.
func groupCondition(conditionType string, was, want cluster.GangCondition, generation int64) map[string]any {
	status := metav1.ConditionFalse
	if want.Scheduled {
		status = metav1.ConditionTrue
	}
	condition := map[string]any{"type": conditionType, "status": status, "reason": want.Reason, "message": want.Message}
	if generation != 0 {
		condition["observedGeneration"] = generation
	}
	if was.Reason == "" || was.Scheduled != want.Scheduled {
		condition["lastTransitionTime"] = metav1.Now()
	}
	return condition
}

// errOtherVersion says that the API server was upgraded while a status was written.
var errOtherVersion = errors.New("the API is served in another version now")

// errNoSubresource says that an API has no status of its own.
var errNoSubresource = errors.New("the status is not a resource of its own")

// writeObject sends the status of an object of a resource definition, which is read first: its lists have no keys by
// which a patch could merge them.
func (w *GangWriter) writeObject(s engine.GangStatus, api gangapi.API,
	objects dynamic.ResourceInterface) (string, error) {
	read := func() (*unstructured.Unstructured, error) {
		ctx, cancel := context.WithTimeout(w.ctx, call.RereadTimeout)
		defer cancel()
		return objects.Get(ctx, s.Gang.Name, metav1.GetOptions{})
	}
	got, err := read()
	if apierrors.IsNotFound(err) || err == nil && got.GetUID() != types.UID(s.UID) {
		return gangObsolete, nil
	} else if err != nil {
		return "", fmt.Errorf("reading %s %s: %w", api.WatchName(), s.Gang, err)
	}
	status := api.Status(got, s, metav1.Now())
	if len(status) == 0 {
		return gangEqual, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": unchangedSince(got), "status": status})
	if err != nil {
		panic(fmt.Sprintf("kube: status of gang %s: %v", s.Gang, err)) // plain data always marshals
	}
	ctx, cancel := w.writing(call.Timeout)
	defer cancel()
	err = w.patch(ctx, objects, s, body)
	if apierrors.IsNotFound(err) {
		// Either the object went, or its status is part of it. What is there to be read tells.
		if _, gone := read(); apierrors.IsNotFound(gone) {
			return gangObsolete, nil
		}
		w.setWhole(s.Gang.Source, true)
		return "", fmt.Errorf("writing the status of %s %s: %w", api.WatchName(), s.Gang, errNoSubresource)
	} else if err != nil {
		return "", fmt.Errorf("writing the status of %s %s: %w", api.WatchName(), s.Gang, err)
	}
	return gangWritten, nil
}

// patch sends the status, to its subresource where there is one. A patch of the whole object leaves the status as it
// was where there is one after all.
func (w *GangWriter) patch(ctx context.Context, objects dynamic.ResourceInterface, s engine.GangStatus,
	body []byte) error {
	if !w.isWhole(s.Gang.Source) {
		_, err := objects.Patch(ctx, s.Gang.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	}
	got, err := objects.Patch(ctx, s.Gang.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	var sent struct{ Status struct{ Phase string } }
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	if phase := gangapi.Phase(got); sent.Status.Phase != "" && phase != sent.Status.Phase {
		w.setWhole(s.Gang.Source, false)
		return fmt.Errorf("the phase stayed %q, the status is a resource of its own now", phase)
	}
	return nil
}

func (w *GangWriter) isWhole(source cluster.GangSource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.whole[source]
}

func (w *GangWriter) setWhole(source cluster.GangSource, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whole[source] = whole
}
