//! A server of the Model Context Protocol on standard input and output.
//!
//! It knows neither runs nor commands: the caller passes the tools and a function that runs them.

use std::io;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::transport::stdio;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value};

/// A tool that clients see.
#[derive(Clone, Debug)]
pub struct McpTool {
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Map<String, Value>,
    pub is_read_only: bool,
}

/// Runs a tool: its name and its arguments. Both results are JSON objects; `Err` has why the tool failed.
pub type ToolFunction = Box<dyn Fn(&str, &Map<String, Value>) -> Result<Value, Value> + Send + Sync>;

pub struct McpServer {
    pub instructions: String,
    pub tools: Vec<McpTool>,
    pub call: ToolFunction,
}

impl McpServer {
    /// Answers requests until the client closes the connection.
    pub fn serve(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let running = Handler(Arc::new(self)).serve(stdio()).await.map_err(io::Error::other)?;
            running.waiting().await.map(drop).map_err(io::Error::other)
        })
    }
}

#[derive(Clone)]
struct Handler(Arc<McpServer>);

impl Handler {
    fn tools(&self) -> Vec<Tool> {
        let tool = |tool: &McpTool| {
            Tool::new(tool.name.clone(), tool.description.clone(), tool.input_schema.clone())
                .with_annotations(ToolAnnotations::new().read_only(tool.is_read_only))
        };
        self.0.tools.iter().map(tool).collect()
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("runner", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.0.instructions.clone())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.0.tools.iter().any(|tool| tool.name == request.name) {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        }
        let server = Arc::clone(&self.0);
        // Commands read files and run git.
        let call = tokio::task::spawn_blocking(move || {
            (server.call)(&request.name, &request.arguments.unwrap_or_default())
        });
        let result = call.await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(result.map_or_else(CallToolResult::structured_error, CallToolResult::structured).into())
    }
}
