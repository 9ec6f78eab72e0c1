package monitoring

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

type object = map[string]any

// Files returns what is written to manifests/monitoring, by name.
func Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	rule, err := yaml.Marshal(object{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": object{"name": "jobtree", "namespace": "jobtree-system"},
		"spec":     rules(),
	})
	if err != nil {
		return nil, err
	}
	out["prometheus-rule.yaml"] = append([]byte("# Written by `make generate` from pkg/monitoring.\n"), rule...)
	for i := range Dashboards {
		text, err := json.MarshalIndent(Dashboards[i].grafana(), "", "  ")
		if err != nil {
			return nil, err
		}
		out[Dashboards[i].Name] = append(text, '\n')
	}
	return out, nil
}

// Rules returns the alerts as a file of rules for Prometheus itself.
func Rules() ([]byte, error) { return yaml.Marshal(rules()) }

func rules() object {
	var list []object
	for i := range Alerts {
		a := &Alerts[i]
		list = append(list, object{"alert": a.Name, "expr": a.Expr, "for": a.For,
			"labels":      object{"severity": string(a.Severity)},
			"annotations": object{"summary": a.Summary, "runbook_url": a.RunbookURL()}})
	}
	return object{"groups": []object{{"name": "jobtree", "rules": list}}}
}

// Grafana divides a dashboard into 24 columns.
const (
	columns     = 24
	panelHeight = 8
)

// grafana returns a dashboard as Grafana reads it.
func (d *Dashboard) grafana() object {
	var panels []object
	id, y := 1, 0
	for _, row := range d.Rows {
		panels = append(panels, object{"id": id, "type": "row", "title": row.Title, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": columns, "h": 1}})
		id, y = id+1, y+1
		width := columns / len(row.Panels)
		for i := range row.Panels {
			panels = append(panels, row.Panels[i].grafana(id, object{"x": i * width, "y": y, "w": width, "h": panelHeight}))
			id++
		}
		y += panelHeight
	}
	return object{
		"uid": d.UID, "title": d.Title, "tags": []string{"jobtree"}, "timezone": "browser", "schemaVersion": 39,
		"editable": true, "refresh": "30s", "time": object{"from": "now-6h", "to": "now"}, "panels": panels,
		"templating": object{"list": []object{{"name": "datasource", "label": "Data source", "type": "datasource",
			"query": "prometheus"}}},
	}
}

func (p *Panel) grafana(id int, at object) object {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var targets []object
	for i, q := range p.Queries {
		targets = append(targets, object{"refId": fmt.Sprintf("%c", 'A'+i), "datasource": source, "expr": q.Expr,
			"legendFormat": q.Legend, "instant": p.Kind != Series, "range": p.Kind == Series})
	}
	defaults := object{"unit": p.Unit, "min": nil}
	if p.Stacked {
		defaults["custom"] = object{"stacking": object{"mode": "normal"}, "fillOpacity": 40}
	}
	return object{"id": id, "type": string(p.Kind), "title": p.Title, "description": p.Help, "gridPos": at,
		"datasource": source, "targets": targets, "fieldConfig": object{"defaults": defaults, "overrides": []object{}}}
}
