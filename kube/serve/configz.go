// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
)

// configz answers with the configuration under the name that upstream gives it. Rejected: component-base's configz,
// whose register is one for the process, so that a second scheduler in it would have to show the configuration of the
// first.
func configz(config runtime.Object) http.Handler {
	shown := map[string]runtime.Object{} // name -> configuration
	if config != nil {
		shown["componentconfig"] = config
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, err := json.Marshal(shown)
		if err != nil {
			http.Error(w, "configuration: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Write(text) // an error here means that the reader went away
	})
}
