//! Documents of services.

use polylogue_tools::openapi::Document;

use super::Loader;
use crate::diagnostic::Report;
use crate::team::Team;

impl Loader<'_> {
    /// Reads the operations of the services of `team`.
    pub(super) fn read_documents(&self, team: &mut Team, report: &mut Report<'_>) {
        for service in team.openapi.values_mut().filter(|service| service.file.ok) {
            if report.full() {
                return;
            }
            let include: Vec<&str> = service.include.iter().map(String::as_str).collect();
            let read = self.work_file(&service.file).and_then(|text| Document::read(&text));
            match read.and_then(|document| document.operations(&include, service.base_url.as_deref())) {
                Ok(operations) => service.value.operations = operations,
                Err(why) => {
                    let message = format!("`{}` cannot be used: {why}", service.file);
                    report.error(&service.file.span, message);
                }
            }
        }
    }
}
