// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/kube/wire"
	"github.com/kumiki-scheduler/kumiki/record"
)

const (
	// noteLimit is the longest note that the API takes, in bytes (KEP-383).
	noteLimit = 1024
	// eventsInFlight and eventsWaiting bound the events under way.
	eventsInFlight = 16
	eventsWaiting  = 20_000
	eventTries     = 12
	// A series is written again when it is this old (upstream: client-go tools/events), and ends when nothing was added
	// for seriesEnds.
	seriesRefresh = 30 * time.Minute
	seriesEnds    = 6 * time.Minute
	// seriesKept bounds the series that are remembered.
	seriesKept = 20_000
)

// EventWriter writes events.k8s.io events about pods. It never blocks its caller: when too many wait, the oldest goes.
// The same event again becomes a series on the first one.
type EventWriter struct {
	client kubernetes.Interface
	// writes sends new events; set before the first event.
	writes  wire.Writes
	newest  func(record.PodRef) *cluster.Pod
	metrics *metrics.Metrics
	// controller is reported for pods that are not known any more.
	controller string
	hostname   string
	patience   time.Duration

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	queue  taskQueue[eventWrite]
	series map[seriesKey]*series
	lastNS int64 // event names are made of times; each is later than the one before
}

// seriesKey tells which events are the same. The note is part of it: a series says one thing often.
type seriesKey struct{ uid, kind, action, reason, note string }

// eventWrite is one write of an event.
type eventWrite struct {
	event *eventsv1.Event
	of    *series // nil for an event that cannot come again
}

// series is one event that came again.
type series struct {
	event    *eventsv1.Event // as created
	count    int32
	last     time.Time
	reported time.Time // when the count was last given to be written
	// inFlight: a write of it waits or is under way; the next one must find the event there. pending: there is to be a
	// next one.
	inFlight, pending bool
}

// NewEventWriter returns an EventWriter. Calls end when ctx does. controller and hostname name the reporter.
func NewEventWriter(ctx context.Context, client kubernetes.Interface, newest func(record.PodRef) *cluster.Pod,
	metrics *metrics.Metrics, controller, hostname string) *EventWriter {
	w := &EventWriter{
		client: client, writes: wire.Typed(client), newest: newest, metrics: metrics,
		controller: controller, hostname: hostname,
		patience: time.Second, series: map[seriesKey]*series{},
	}
	w.queue = taskQueue[eventWrite]{mu: &w.mu, limit: eventsInFlight, do: w.carryOut}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// cutNote cuts a note to what the API takes, marking the cut as upstream does. It never cuts a character in two.
func cutNote(note string) string {
	const mark = " ..."
	if len(note) <= noteLimit {
		return note
	}
	end := noteLimit - len(mark)
	for end > 0 && !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + mark
}

// Write queues one event.
func (w *EventWriter) Write(e engine.WriteEvent) {
	now := time.Now()
	w.write(e, w.event(e, e.Pod, now), now)
}

// WriteAbout queues one event about a pod to which something is done for the sake of another: the one who schedules
// that other pod reports it.
func (w *EventWriter) WriteAbout(e engine.WriteEvent, other record.PodRef) {
	now := time.Now()
	ev := w.event(e, other, now)
	ev.Related = w.reference(other)
	w.write(e, ev, now)
}

func (w *EventWriter) write(e engine.WriteEvent, ev *eventsv1.Event, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue.closed {
		return
	}
	// A pod is bound once; only what can come again is worth remembering.
	if e.Type != corev1.EventTypeNormal {
		key := seriesKey{e.Pod.UID, e.Type, e.Action, e.Reason, ev.Note}
		if known := w.series[key]; known != nil {
			w.again(known, now)
			return
		}
		if len(w.series) >= seriesKept {
			w.endSeriesLocked(now)
		}
		if len(w.series) < seriesKept {
			s := &series{event: ev, count: 1, last: now, reported: now}
			w.series[key] = s
			w.push(eventWrite{ev, s})
			return
		}
	}
	w.push(eventWrite{event: ev})
}

// again counts one more of a series. The second is written at once; later ones when the series is refreshed or ends.
func (w *EventWriter) again(s *series, now time.Time) {
	s.count++
	s.last = now
	if s.count == 2 || now.Sub(s.reported) >= seriesRefresh {
		w.report(s, now)
	}
}

// report has the count of a series written, behind what is on the way of it.
func (w *EventWriter) report(s *series, now time.Time) {
	s.reported = now
	if s.pending = s.inFlight; s.pending {
		return
	}
	ev := s.event.DeepCopy()
	ev.Series = &eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(s.last)}
	w.push(eventWrite{ev, s})
}

// EndSeries writes the last count of series that have ended. Call it about once a minute.
func (w *EventWriter) EndSeries() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.queue.closed {
		w.endSeriesLocked(time.Now())
	}
}

func (w *EventWriter) endSeriesLocked(now time.Time) {
	for key, s := range w.series {
		if now.Sub(s.last) < seriesEnds {
			continue
		}
		if s.count > 2 {
			w.report(s, now)
		}
		delete(w.series, key)
	}
}

// push queues an event to be written.
func (w *EventWriter) push(l eventWrite) {
	if len(w.queue.waiting) >= eventsWaiting {
		if lost := w.queue.pop().of; lost != nil {
			lost.inFlight = false
		}
		w.metrics.EventsDropped.Inc()
	}
	if l.of != nil {
		l.of.inFlight = true
	}
	w.queue.push(l)
}

// event makes the event, as the scheduler of the pod "of" reports it.
func (w *EventWriter) event(e engine.WriteEvent, of record.PodRef, now time.Time) *eventsv1.Event {
	controller := w.controller
	if pod := w.newest(of); pod != nil {
		controller = pod.Spec.SchedulerName
	}
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: w.name(e.Pod.Name, now), Namespace: e.Pod.Namespace},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: controller,
		ReportingInstance:   controller + "-" + w.hostname,
		Action:              e.Action,
		Reason:              e.Reason,
		Regarding:           *w.reference(e.Pod),
		Note:                cutNote(e.Note),
		Type:                e.Type,
	}
}

func (w *EventWriter) reference(pod record.PodRef) *corev1.ObjectReference {
	ref := &corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name,
		UID: types.UID(pod.UID)}
	if known := w.newest(pod); known != nil {
		ref.ResourceVersion = known.ResourceVersion
	}
	return ref
}

// name makes a name that no event of this writer had: the pod's name and a time.
func (w *EventWriter) name(pod string, now time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastNS = max(w.lastNS+1, now.UnixNano())
	suffix := fmt.Sprintf(".%x", w.lastNS)
	const longest = 253 // of an object's name
	if len(pod)+len(suffix) > longest {
		pod = pod[:longest-len(suffix)]
	}
	return pod + suffix
}

// carryOut delivers one event, and then the next count of its series.
func (w *EventWriter) carryOut(l eventWrite) {
	w.deliver(l.event)
	if l.of != nil {
		w.arrived(l.of)
	}
}

// arrived writes what a series still owes, now that its last write is over.
func (w *EventWriter) arrived(s *series) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.inFlight = false; s.pending && !w.queue.closed {
		w.report(s, time.Now())
	}
}

// deliver writes one event, again and again while the API server does not answer.
func (w *EventWriter) deliver(ev *eventsv1.Event) {
	wait := w.patience
	for try := 1; ; try++ {
		err := w.send(ev)
		if err == nil || apierrors.IsAlreadyExists(err) {
			return
		}
		if definite(err) || try == eventTries {
			w.metrics.EventsDropped.Inc()
			klog.FromContext(w.ctx).V(2).Info("Event not written",
				"pod", klog.KRef(ev.Regarding.Namespace, ev.Regarding.Name),
				"reason", ev.Reason, "tries", try, "err", err)
			return
		}
		if !call.Sleep(w.ctx, wait) {
			return
		}
		wait = min(2*wait, 10*time.Second)
	}
}

func (w *EventWriter) send(ev *eventsv1.Event) error {
	ctx, cancel := context.WithTimeout(w.ctx, call.Timeout)
	defer cancel()
	ctx = call.WithTrace(ctx, nil)
	if ev.Series != nil {
		body, err := json.Marshal(map[string]any{"series": ev.Series})
		if err != nil {
			return fmt.Errorf("series of event %s/%s: %w", ev.Namespace, ev.Name, err)
		}
		_, err = w.client.EventsV1().Events(ev.Namespace).Patch(
			ctx, ev.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		}
		// The first one has expired or was never written.
	}
	return w.writes.CreateEvent(ctx, ev)
}

// Stop gives what waits until patience ends to be written, and ends the rest.
func (w *EventWriter) Stop(patience context.Context) {
	for {
		w.mu.Lock()
		idle := w.queue.idle()
		if idle || patience.Err() != nil {
			w.queue.closed = true
			w.mu.Unlock()
			break
		}
		w.mu.Unlock()
		call.Sleep(patience, 10*time.Millisecond)
	}
	w.cancel()
	w.queue.wait()
}
