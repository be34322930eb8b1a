package trigger

import (
	"net/http"

	"github.com/mayflydb/mayfly/internal/work/api"
)

// Operations returns the table of operations. To add one: a method, a file for it, a line here.
func (t *Triggers) Operations() []api.Operation {
	const all, one = "/2015-03-31/event-source-mappings", "/2015-03-31/event-source-mappings/{UUID}"
	return []api.Operation{
		{Name: "CreateEventSourceMapping", Method: http.MethodPost, Path: all, Status: http.StatusAccepted, Do: api.Bind(t.CreateEventSourceMapping)},
		{Name: "ListEventSourceMappings", Method: http.MethodGet, Path: all, Status: http.StatusOK, Do: api.Bind(t.ListEventSourceMappings)},
		{Name: "GetEventSourceMapping", Method: http.MethodGet, Path: one, Status: http.StatusOK, Do: api.Bind(t.GetEventSourceMapping)},
		{Name: "UpdateEventSourceMapping", Method: http.MethodPut, Path: one, Status: http.StatusAccepted, Do: api.Bind(t.UpdateEventSourceMapping)},
		{Name: "DeleteEventSourceMapping", Method: http.MethodDelete, Path: one, Status: http.StatusAccepted, Do: api.Bind(t.DeleteEventSourceMapping)},
	}
}
