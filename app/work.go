// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// workPath is where a scheduler serves its record.WorkReport. It is off with enableProfiling: false.
const workPath = "/debug/kumiki/work"

// maxWorkSeconds bounds how long all Steps are measured for one request.
const maxWorkSeconds = 600

// handlers returns what the scheduler serves besides health, metrics and the like: path -> handler.
func (s *Scheduler) handlers() map[string]http.Handler {
	handlers := map[string]http.Handler{}
	if s.opts.Handlers != nil {
		maps.Copy(handlers, s.opts.Handlers(s))
	}
	if s.opts.Config.Profiling {
		handlers[workPath] = http.HandlerFunc(s.serveWork)
	}
	return handlers
}

// serveWork answers with what the scheduling core does in the next ?seconds, or did since the start.
func (s *Scheduler) serveWork(w http.ResponseWriter, r *http.Request) {
	seconds := 0
	if text := r.FormValue("seconds"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxWorkSeconds {
			http.Error(w, fmt.Sprintf("seconds must be a number from 0 to %d, got %q", maxWorkSeconds, text),
				http.StatusBadRequest)
			return
		}
		seconds = n
	}
	report, err := s.inner.Loop.Work(r.Context(), time.Duration(seconds)*time.Second)
	if err != nil {
		http.Error(w, "the scheduler does not answer: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(report) // an error here means that the reader went away
}
