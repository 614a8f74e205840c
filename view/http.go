// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

const (
	// defaultDecisions and maxDecisions bound one answer of decisions.
	defaultDecisions = 100
	maxDecisions     = 10000
	// maxWatchers bounds the streams of moves, each of which costs a goroutine and some work per move.
	maxWatchers = 64
	// linesAtOnce bounds how many moves are copied under the lock.
	linesAtOnce = 512
	// keepAlive is the period of empty lines by which the reader of an idle stream recognises that it is alive.
	keepAlive = 15 * time.Second
)

// API serves the answers of a View. All of it is read-only: it rejects all methods but GET and HEAD.
type API struct {
	v     *View
	whole *http.ServeMux
}

// Handler returns the API.
func (v *View) Handler() *API {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix+"why/pod/{namespace}/{name}", v.servePod)
	mux.HandleFunc("GET "+Prefix+"why/node/{name}", v.serveNode)
	mux.HandleFunc("GET "+Prefix+"why/gang/{namespace}/{name}", v.serveGang)
	mux.HandleFunc("GET "+Prefix+"whatif/{kind}/{namespace}/{name}", v.serveWhatIf)
	mux.HandleFunc("GET "+Prefix+"queue", v.serveQueue)
	mux.HandleFunc("GET "+Prefix+"queue/watch", v.serveMoves)
	mux.HandleFunc("GET "+Prefix+"gangs", v.serveGangs)
	mux.HandleFunc("GET "+Prefix+"decisions", v.serveDecisions)
	mux.HandleFunc("GET "+Prefix+"timing", v.serveTiming)
	mux.HandleFunc("GET "+Prefix+"timing/pod/{namespace}/{name}", v.serveTimingOfPod)
	return &API{v, mux}
}

// ServeHTTP answers an identity that may read all of Prefix.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.whole.ServeHTTP(w, r) }

// missing is why there is no report on a pod or a gang.
func missing(kind, namespace, name string) string {
	return kind + " " + namespace + "/" + name + " is not known to the scheduler"
}

func (v *View) servePod(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	report, found, err := v.Pod(r.Context(), namespace, name)
	answer(w, report, found, err, missing("pod", namespace, name))
}

func (v *View) serveNode(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	report, found, err := v.Node(r.Context(), name)
	answer(w, report, found, err, "node "+name+" is not known to the scheduler")
}

func (v *View) serveGang(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	report, found, err := v.Gang(r.Context(), namespace, name)
	answer(w, report, found, err, missing("gang", namespace, name))
}

func (v *View) serveWhatIf(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	answerWhatIf(w, r, func(gang bool, conditions []string) (record.WhatIf, error, error) {
		return v.WhatIf(r.Context(), gang, namespace, name, conditions)
	})
}

// answerWhatIf answers what would happen under each ?if, applied in the order given. ask returns what View.WhatIf does.
func answerWhatIf(w http.ResponseWriter, r *http.Request,
	ask func(gang bool, conditions []string) (report record.WhatIf, unanswered, err error)) {
	kind := r.PathValue("kind")
	if kind != "pod" && kind != "gang" {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound,
			"can suppose something about pods and gangs, not "+strconv.Quote(kind))
		return
	}
	report, unanswered, err := ask(kind == "gang", r.URL.Query()["if"])
	var no *record.Refusal
	switch {
	case unanswered == nil:
		answer(w, report, true, err, "")
	case errors.As(unanswered, &no) && no.Forbidden:
		forbid(w, no.Message)
	case errors.As(unanswered, &no) && no.About:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, no.Message)
	case errors.As(unanswered, &no) && no.Missing:
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, no.Message)
	case errors.As(unanswered, &no):
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, no.Message)
	default:
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, unanswered.Error())
	}
}

// serveQueue answers with the entries of ?namespace, or of all; the counts are of all.
func (v *View) serveQueue(w http.ResponseWriter, r *http.Request) {
	report, err := v.Queue(r.Context())
	if namespace := r.FormValue("namespace"); namespace != "" {
		report.Entries, _ = keep(report.Entries, func(e record.QueueEntry) bool { return e.Pod.Namespace == namespace })
	}
	answer(w, report, true, err, "")
}

// serveGangs answers with the gangs of ?namespace, or all; the counts are of all.
func (v *View) serveGangs(w http.ResponseWriter, r *http.Request) {
	list, err := v.Gangs(r.Context())
	if namespace := r.FormValue("namespace"); namespace != "" {
		list.Gangs, _ = keep(list.Gangs, func(e record.GangEntry) bool { return redactor{namespace}.oursKey(e.Name) })
	}
	answer(w, list, true, err, "")
}

func (v *View) serveDecisions(w http.ResponseWriter, r *http.Request) {
	limit := defaultDecisions
	if text := r.FormValue("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxDecisions {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest,
				"limit must be a number from 1 to "+strconv.Itoa(maxDecisions)+", got "+strconv.Quote(text))
			return
		}
		limit = n
	}
	answer(w, DecisionList{v.Decisions(r.FormValue("pod"), limit)}, true, nil, "")
}

// answer writes a report, or why there is none.
func answer(w http.ResponseWriter, report any, found bool, err error, missing string) {
	switch {
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"the scheduler does not answer: "+err.Error())
	case !found:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, missing)
	default:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(report) // an error here means that the reader went away
	}
}

// refuse answers with a Status, as an API server does.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reason,
		Message:  message,
	})
}

// serveMoves streams moves, those of ?namespace or all.
func (v *View) serveMoves(w http.ResponseWriter, r *http.Request) {
	namespace := r.FormValue("namespace")
	v.streamMoves(w, r, reader{
		line: func(l MoveLine) (MoveLine, bool) {
			return l, namespace == "" || l.Move == nil || l.Move.Pod.Namespace == namespace
		},
		still: func() bool { return true },
	})
}

// reader is the reader of a stream of moves.
type reader struct {
	line  func(MoveLine) (shown MoveLine, ok bool) // returns a line as the reader may see it; ok is false for no line
	still func() bool                              // reports whether the reader may go on
}

// streamMoves streams moves, one MoveLine per line, until the reader goes away: those after ?since, or only new ones.
func (v *View) streamMoves(w http.ResponseWriter, r *http.Request, s reader) {
	since := uint64(0)
	text := r.FormValue("since")
	if text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest,
				"since must be a number, got "+strconv.Quote(text))
			return
		}
		since = n
	}
	news, last, ok := v.watch()
	if !ok {
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many streams of moves are open")
		return
	}
	defer v.unwatch(news)

	first := MoveLine{Epoch: v.epoch, Seq: last}
	switch epoch := r.FormValue("epoch"); {
	case text == "":
		since = last
	case epoch != "" && epoch != v.epoch:
		// The numbers are those of an earlier process: send all moves that this one knows.
		since, first.Lost = 0, true
	case since > last:
		since = last
	}
	w.Header().Set("Content-Type", "application/jsonlines")
	out := json.NewEncoder(w)
	flush := http.NewResponseController(w).Flush
	if out.Encode(first) != nil || flush() != nil {
		return
	}
	alive := time.NewTicker(v.keepAlive)
	defer alive.Stop()
	for {
		for {
			var lines []MoveLine
			lines, since = v.movesAfter(since)
			for _, line := range lines {
				if shown, ok := s.line(line); ok && out.Encode(shown) != nil {
					return
				}
			}
			if len(lines) == 0 {
				break
			}
			if flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-news:
		case <-alive.C:
			if !s.still() {
				return
			}
			if _, err := w.Write([]byte("\n")); err != nil || flush() != nil {
				return
			}
		}
	}
}

// watch registers for moves; last is the number of the newest so far.
func (v *View) watch() (news chan struct{}, last uint64, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.mu.watchers) >= maxWatchers {
		return nil, 0, false
	}
	news = make(chan struct{}, 1)
	v.mu.watchers[news] = struct{}{}
	return news, v.mu.moves.last, true
}

func (v *View) unwatch(news chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.mu.watchers, news)
}

// movesAfter copies some of the moves after a number, and returns the number after which to continue. A gap is a line
// of its own.
func (v *View) movesAfter(since uint64) (lines []MoveLine, next uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if first := v.mu.moves.first(); since+1 < first {
		lines = append(lines, MoveLine{Seq: first - 1, Lost: true})
		since = first - 1
	}
	for since < v.mu.moves.last && len(lines) < linesAtOnce {
		since++
		move := v.mu.moves.at(since)
		lines = append(lines, MoveLine{Seq: since, Move: &move})
	}
	return lines, since
}

// Report serves what read gives, as JSON.
func Report(read func(ctx context.Context) (any, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		report, err := read(r.Context())
		answer(w, report, true, err, "")
	})
	return mux
}
