// SPDX-License-Identifier: Apache-2.0

package incidents

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/kube/incident"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Path is where the list of incidents is served; a bundle is at Path/ID, and Path/new writes one. RecordingPath has
// what is kept now as a bundle with the recording alone, which is no incident: it is not listed, counted or kept.
const (
	Path          = "/debug/kumiki/incidents"
	RecordingPath = Path + "/recording"
)

// Handler serves the bundles. It must be behind authorization.
func (s *Store) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		switch id := strings.Trim(strings.TrimPrefix(r.URL.Path, Path), "/"); id {
		case "":
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(s.List()) // an error here means that the reader went away
		case "new":
			s.count(incident.ByHand)
			in := s.Write(r.Context(), incident.Finding{Cause: incident.ByHand, At: record.Time(time.Now().UnixNano())})
			if in.Error != "" {
				http.Error(w, in.Error, http.StatusInternalServerError)
				return
			}
			s.serve(w, in.ID)
		case "recording":
			s.serveRecording(w)
		default:
			s.serve(w, id)
		}
	})
}

func (s *Store) serveRecording(w http.ResponseWriter) {
	var data bytes.Buffer
	if err := s.writeRecording(&data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	data.WriteTo(w) // as above
}

func (s *Store) serve(w http.ResponseWriter, id string) {
	content, err := s.Open(id)
	switch {
	case errors.Is(err, ErrUnknown):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer content.Close()
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", `attachment; filename="`+id+extension+`"`)
	io.Copy(w, content) // as above
}
